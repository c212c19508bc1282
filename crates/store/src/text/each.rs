//! A visitor of every text of a record.

use crate::{
    AccuracyNote, CommandRecord, EventRecord, Finding, Measurement, MemberUse, Observation,
    PublishedFigure, Run, Scope, Series, Setting,
};

/// A value with texts in it, which may be foreign.
pub trait EachText {
    /// Passes every text of the value to `change`.
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String));
}

impl EachText for String {
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        change(self);
    }
}

impl<T: EachText> EachText for Vec<T> {
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        for one in self {
            one.each_text(change);
        }
    }
}

impl<T: EachText> EachText for Option<T> {
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        if let Some(one) = self {
            one.each_text(change);
        }
    }
}

/// Implements [`EachText`] for records, given the fields that are, or have, texts.
macro_rules! texts {
    ($($record:ty: $($field:ident)*;)*) => {
        $(impl EachText for $record {
            fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
                $(self.$field.each_text(change);)*
            }
        })*
    };
}

texts! {
    AccuracyNote: class title statement subjects jobs;
    CommandRecord: scope command stdout stderr;
    EventRecord: scope kind text;
    Finding: rule title scope part evidence effect remedy;
    Measurement: bench suite host subject filesystem fit job job_title tool part class
        array_state_start array_state_end members published;
    MemberUse: member model;
    Observation: scope name value unit source;
    PublishedFigure: source reliability note;
    Run: name started finished bench suite suite_title raidlab_version command_line plan_hash;
    Scope: host subject filesystem;
    Series: scope name unit;
    Setting: scope name value source;
}

#[cfg(test)]
mod tests {
    use super::EachText;
    use crate::tests;
    use crate::{
        AccuracyNote, CommandRecord, EventRecord, Finding, Observation, Scope, Series, Setting,
        Severity,
    };
    use serde::Serialize;
    use serde_json::Value;

    /// Words of enums, which are ours.
    const OURS: [&str; 5] = ["read", "write", "measured", "predicted", "warning"];

    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.values().for_each(|item| texts(item, found)),
            _ => {}
        }
    }

    fn all_are_reached(mut record: impl EachText + Serialize) {
        let mut changed = 0;
        record.each_text(&mut |text| {
            changed += 1;
            "reached".clone_into(text);
        });
        let mut found = Vec::new();
        texts(
            &serde_json::to_value(&record).expect("it can be written"),
            &mut found,
        );
        found.retain(|text| !OURS.contains(&text.to_lowercase().as_str()));
        assert!(found.iter().all(|text| text == "reached"), "{found:?}");
        assert_eq!(found.len(), changed, "{found:?}");
    }

    #[test]
    fn no_text_is_passed_over() {
        let text = String::new;
        let scope = Scope::default;
        all_are_reached(tests::run("a"));
        all_are_reached(tests::measurement(1));
        all_are_reached(AccuracyNote {
            subjects: vec![text()],
            jobs: vec![text()],
            ..AccuracyNote::default()
        });
        all_are_reached(CommandRecord {
            scope: scope(),
            at_ns: 0,
            command: text(),
            code: None,
            took_ns: 0,
            stdout: text(),
            stderr: text(),
        });
        all_are_reached(EventRecord {
            scope: scope(),
            at_ns: 0,
            kind: text(),
            member: None,
            text: text(),
        });
        all_are_reached(Finding {
            rule: text(),
            title: text(),
            severity: Severity::Warning,
            scope: scope(),
            op: None,
            part: text(),
            evidence: text(),
            effect: text(),
            remedy: text(),
        });
        all_are_reached(Observation {
            scope: scope(),
            name: text(),
            value: text(),
            unit: text(),
            source: text(),
        });
        all_are_reached(Series {
            scope: scope(),
            name: text(),
            unit: text(),
            points: Vec::new(),
        });
        all_are_reached(Setting {
            scope: text(),
            name: text(),
            value: text(),
            source: text(),
        });
    }
}
