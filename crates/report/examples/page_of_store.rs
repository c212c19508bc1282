//! scratch
use raidlab_report::{RunData, Style, html, markdown, terminal};
use raidlab_store::Store;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    for pair in args[1..].chunks(2) {
        let store = Store::open(std::path::Path::new(&pair[0])).unwrap();
        let data = RunData::load(&store, "latest").unwrap();
        std::fs::write(&pair[1], html(&data).unwrap()).unwrap();
        let t = terminal(
            &data,
            &Style {
                width: Some(100),
                colour: false,
                plain: false,
            },
        );
        std::fs::write(format!("{}.txt", pair[1]), t).unwrap();
        let t = terminal(
            &data,
            &Style {
                width: None,
                colour: false,
                plain: false,
            },
        );
        std::fs::write(format!("{}.wide.txt", pair[1]), t).unwrap();
        std::fs::write(format!("{}.md", pair[1]), markdown(&data)).unwrap();
    }
}
