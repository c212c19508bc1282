//! Results of others as runs of our own: logs, tool output, figures of articles.
