//! Whom each combination of security options lets in: the table of docs/reference/array.md,
//! walked cell by cell with clients of every kind.

use crate::client::{ClientTls, Place, Wishes, address, connect};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DOCUMENT: &str = include_str!("../../../../docs/reference/array.md");

/// Where certificates for tests are.
pub(crate) fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../serve/tests/tls")
}

/// `raidlab serve` in a folder of its own, ended when it is dropped.
pub(crate) struct Served {
    child: Child,
    /// Where it says that it listens.
    pub(crate) place: Place,
    /// Whether the address that it says is for TLS.
    says_tls: bool,
    /// For its files.
    pub(crate) folder: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// With these arguments, in a folder that is there; `None` if it does not
    /// start.
    pub(crate) fn start(folder: tempfile::TempDir, words: &[String]) -> Option<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_raidlab"))
            .args(["serve", "--name", "test"])
            .args(words)
            .current_dir(folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let (place, says_tls) = loop {
            let mut line = String::new();
            if errors.read_line(&mut line).expect("text") == 0 {
                assert!(!child.wait().expect("its end").success());
                return None;
            }
            if let Some(uri) = line.strip_prefix("  at ") {
                let place = address(uri.trim()).expect("an address").0;
                break (place, uri.starts_with("nbds"));
            }
        };
        // Whatever else it says is read by somebody, as in a terminal.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        let place = match place {
            Place::Tcp(_, port) => Place::Tcp("127.0.0.1".to_owned(), port),
            unix @ Place::Unix(_) => unix,
        };
        Some(Self {
            child,
            place,
            says_tls,
            folder,
        })
    }

    /// The process id of the server.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

/// How a client comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Comes {
    Plain,
    /// By the option that has no reply, and so no refusal but the end.
    PlainByName,
    Tls,
    TlsAsStranger,
    TlsCertified,
}

const ALL: [Comes; 5] = [
    Comes::Plain,
    Comes::PlainByName,
    Comes::Tls,
    Comes::TlsAsStranger,
    Comes::TlsCertified,
];

/// The certificate that a client shows, by its file's name.
pub(crate) fn tls(shown: Option<&str>) -> ClientTls {
    let folder = certificates();
    ClientTls {
        authority: folder.join("authority.pem"),
        server_name: "localhost".to_owned(),
        certificate: shown.map(|name| {
            let key = folder.join(format!("{name}-key.pem"));
            (folder.join(format!("{name}.pem")), key)
        }),
    }
}

/// Whether a client that comes so can read.
fn is_let_in(place: &Place, comes: Comes) -> bool {
    let tls = match comes {
        Comes::Plain => None,
        Comes::PlainByName => return reads_by_name(place),
        Comes::Tls => Some(tls(None)),
        Comes::TlsAsStranger => Some(tls(Some("stranger"))),
        Comes::TlsCertified => Some(tls(Some("client"))),
    };
    connect(place, tls.as_ref(), &Wishes::default())
        .is_ok_and(|mut client| client.read(0, 512).is_ok())
}

fn reads_by_name(place: &Place) -> bool {
    match place {
        Place::Unix(path) => speak(UnixStream::connect(path).expect("a server")),
        Place::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).expect("a server");
            let most = Some(Duration::from_secs(20));
            stream.set_read_timeout(most).expect("a timeout");
            speak(stream)
        }
    }
}

fn speak(mut stream: impl Read + Write) -> bool {
    let mut words = vec![0, 0, 0, 3];
    words.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\0");
    // A read of 512 bytes: a simple reply of 16 bytes comes before them.
    words.extend_from_slice(&[0x25, 0x60, 0x95, 0x13]);
    words.extend_from_slice(&[0; 22]);
    words.extend_from_slice(&[2, 0]);
    stream.write_all(&words).is_ok() && stream.read_exact(&mut [0; 18 + 10 + 16 + 512]).is_ok()
}

/// What a cell's words mean; `None`: the server does not start.
fn who(words: &str) -> Option<BTreeSet<Comes>> {
    let comes: &[Comes] = match words {
        "plain" => &ALL[..2],
        "plain or TLS" => &ALL,
        "TLS" => &ALL[2..],
        "certificate" => &ALL[4..],
        "does not start" => return None,
        _ => panic!("{words:?} is no word of the table"),
    };
    Some(comes.iter().copied().collect())
}

/// The rows of the table: options, then a cell for each place.
fn rows() -> Vec<Vec<String>> {
    let table = DOCUMENT
        .split("| options |")
        .nth(1)
        .expect("the table of options");
    let lines = table.lines().skip(2);
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    lines
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect()
}

#[test]
fn the_table_of_security_options_holds() {
    let certificates = certificates().display().to_string();
    let options = [
        "--tls-certificate",
        "--require-tls",
        "--tls-client-authority",
    ];
    let rows = rows();
    let mut seen = BTreeSet::new();
    for row in &rows {
        let given: BTreeSet<&str> = row[0].split(' ').filter(|word| *word != "none").collect();
        assert!(seen.insert(given.clone()), "{given:?} stands there twice");
        let mut words: Vec<String> = ["--memory", "65536"].map(str::to_owned).to_vec();
        for option in &given {
            assert!(options.contains(option), "{option}");
            words.push((*option).to_owned());
            match *option {
                "--tls-certificate" => words.extend([
                    format!("{certificates}/server.pem"),
                    "--tls-key".to_owned(),
                    format!("{certificates}/server-key.pem"),
                ]),
                "--tls-client-authority" => {
                    words.push(format!("{certificates}/client-authority.pem"));
                }
                _ => {}
            }
        }
        let places = [
            "--unix nbd.sock",
            "--tcp 127.0.0.1:0",
            "--tcp 0.0.0.0:0",
            "--tcp 0.0.0.0:0 --anywhere",
        ];
        assert_eq!(row.len(), 1 + places.len());
        for (place, cell) in places.iter().zip(&row[1..]) {
            let mut words = words.clone();
            words.extend(place.split(' ').map(str::to_owned));
            let folder = tempfile::tempdir().expect("a folder");
            let served = Served::start(folder, &words);
            let allowed = who(cell);
            let found = served.map(|mut served| {
                let plain = allowed
                    .as_ref()
                    .is_some_and(|them| them.contains(&Comes::Plain));
                assert_ne!(served.says_tls, plain, "{words:?}");
                if let Place::Unix(path) = &served.place {
                    served.place = Place::Unix(served.folder.path().join(path));
                }
                let comers = ALL.into_iter();
                comers
                    .filter(|comes| is_let_in(&served.place, *comes))
                    .collect::<BTreeSet<_>>()
            });
            assert_eq!(found, allowed, "{words:?}");
        }
    }
    assert_eq!(seen.len(), 1 << options.len(), "a combination is missing");
}
