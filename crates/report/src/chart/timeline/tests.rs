use super::{rounded, timeline};
use crate::chart::Figure;
use crate::compute::timeline::timelines;
use crate::data::RunData;
use crate::sample;
use serde_json::{Value, json};

fn figures(data: &RunData) -> Vec<Figure> {
    let all = timelines(&data.series, &data.events, &data.measurements);
    timeline(&all[0], 0, "md").figures
}

fn traces<'f>(figure: &'f Figure, name: &str) -> Vec<&'f Value> {
    let traces = figure.panels[0].plot["data"].as_array().unwrap().iter();
    traces.filter(|trace| trace["name"] == name).collect()
}

#[test]
fn throughput_sync_events_and_jobs_share_a_clock() {
    let found = figures(&sample::bench());
    let ids: Vec<_> = found.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["timeline-0", "timeline-members-0"]);
    let array = &found[0];
    assert!(
        array.caption.contains("bins of 3 seconds"),
        "{}",
        array.caption
    );
    let layout = &array.panels[0].plot["layout"];
    assert_eq!(array.unit, "MB/s (10⁶ bytes), more is better");
    assert_eq!(layout["yaxis2"]["range"], json!([0.0, 102.0]));
    assert_eq!(traces(array, "synced, %")[0]["yaxis"], "y2");
    let shapes = layout["shapes"].as_array().unwrap();
    let kind = |kind: &str| shapes.iter().filter(|shape| shape["type"] == kind).count();
    assert_eq!((kind("rect"), kind("line")), (15, 5));
    // Fail, remove, insert and sync-start lie within seconds: one label.
    let labels = layout["annotations"].as_array().unwrap();
    let marks = labels.iter().filter(|label| label["y"] == 1);
    let texts: Vec<_> = marks.map(|label| label["text"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        ["fail 1<br>remove 1<br>insert 1<br>sync-start", "sync-end"]
    );
}

#[test]
fn members_have_their_temperature_on_the_right() {
    let found = figures(&sample::bench());
    let members = &found[1];
    for slot in 0..2 {
        let name = format!("member {slot}");
        let mut own = traces(members, &name);
        let temperature = format!("{name}, temperature");
        own.extend(traces(members, &temperature));
        let axes: Vec<_> = own.iter().map(|trace| trace["yaxis"].clone()).collect();
        assert_eq!(axes, [Value::Null, json!("y2")]);
        // Once a minute among bins of seconds.
        assert_eq!(own[1]["connectgaps"], json!(true));
        assert_eq!(own[0]["connectgaps"], Value::Null);
    }
}

#[test]
fn sync_alone_is_a_time_line_too() {
    let mut data = sample::bench();
    data.series.retain(|series| series.name == "sync.percent");
    let found = figures(&data);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].unit, "synced, %");
    assert_eq!(traces(&found[0], "synced, %")[0]["yaxis"], "y");
}

#[test]
fn four_digits_stay() {
    assert_eq!(rounded(123_456.0), 123_500.0);
    assert_eq!(rounded(0.001_234_56), 0.001_235);
    assert_eq!(rounded(0.0), 0.0);
    assert_eq!(rounded(-98.765), -98.77);
}
