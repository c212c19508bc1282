//! A headless Chromium, by its DevTools protocol over two named pipes: messages in JSON,
//! each ended by a zero byte.

use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Browsers by the names under which distributions have them.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser with one open page, which is closed when it is dropped.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    next: u64,
    session: Option<String>,
    /// The events of the page since the last look.
    events: Vec<Value>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts the first browser that is installed.
    pub fn start() -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args([&input, &output]).status()?;
        if !made.success() {
            return Err("mkfifo failed".into());
        }
        let name = NAMES.into_iter().find(|name| installed(name));
        let name = name.ok_or("no Chromium is installed")?;
        // The shell opens the pipes at the descriptors that Chromium expects.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<\"$PIPE_IN\" 4>\"$PIPE_OUT\"",
                "sh",
                name,
            ])
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args([
                "--remote-debugging-pipe",
                "--no-first-run",
                "--hide-scrollbars",
            ])
            .args(["--disable-background-networking", "--disable-dev-shm-usage"])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .env("PIPE_IN", &input)
            .env("PIPE_OUT", &output)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = (|| -> std::io::Result<_> {
            let to = File::options().write(true).open(&input)?;
            Ok((to, BufReader::new(File::open(&output)?)))
        })();
        let (to, from) = match pipes {
            Ok(pipes) => pipes,
            Err(error) => {
                child.kill()?;
                return Err(error.into());
            }
        };
        let mut browser = Self {
            child,
            to,
            from,
            next: 0,
            session: None,
            events: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Sets the reader's preferred colour scheme, of an open page too: `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) -> Result<(), Box<dyn Error>> {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media)?;
        Ok(())
    }

    /// Opens a file in a window of this width, and waits until it is loaded.
    pub fn open(&mut self, file: &Path, width: u32) -> Result<(), Box<dyn Error>> {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        self.events.clear();
        let url = format!("file://{}", file.canonicalize()?.display());
        self.call("Page.navigate", json!({"url": url}))?;
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let message = self.read()?;
            self.events.push(message);
        }
        Ok(())
    }

    /// Evaluates an expression in the page, and returns its value, or that of its promise.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, Box<dyn Error>> {
        let arguments =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", arguments)?;
        if !answer["exceptionDetails"].is_null() {
            return Err(format!("the judge itself failed: {}", answer["exceptionDetails"]).into());
        }
        Ok(answer["result"]["value"].take())
    }

    /// The whole page as PNG, in base64.
    pub fn screenshot(&mut self) -> Result<String, Box<dyn Error>> {
        let metrics = self.call("Page.getLayoutMetrics", json!({}))?;
        let size = &metrics["cssContentSize"];
        let clip =
            json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let arguments = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", arguments)?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    /// Errors since the page was opened: scripts that threw, errors on the console, and requests
    /// that are not for the file itself.
    pub fn complaints(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for event in std::mem::take(&mut self.events) {
            let parameters = &event["params"];
            match event["method"].as_str() {
                Some("Network.requestWillBeSent") => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    let of_page = parameters["documentURL"] == parameters["request"]["url"];
                    if !of_page && !url.starts_with("data:") {
                        all.push(("request".to_owned(), url.chars().take(80).collect()));
                    }
                }
                Some("Runtime.exceptionThrown") => {
                    let details = &parameters["exceptionDetails"];
                    all.push((
                        "script".to_owned(),
                        details["exception"]["description"].to_string(),
                    ));
                }
                Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                    let text = parameters["entry"]["text"].to_string();
                    all.push(("script".to_owned(), text));
                }
                Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                    all.push(("script".to_owned(), parameters["args"].to_string()));
                }
                _ => {}
            }
        }
        all
    }

    fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Box<dyn Error>> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.write_all(&bytes)?;
        loop {
            let mut message = self.read()?;
            if message["id"] == self.next {
                if !message["error"].is_null() {
                    return Err(format!("{method}: {}", message["error"]["message"]).into());
                }
                return Ok(message["result"].take());
            }
            self.events.push(message);
        }
    }

    fn read(&mut self) -> Result<Value, Box<dyn Error>> {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes)?;
        if bytes.pop() != Some(0) {
            return Err("the browser has gone".into());
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        if self.call("Browser.close", json!({})).is_err() {
            // An error only means that the browser has ended already.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn installed(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}
