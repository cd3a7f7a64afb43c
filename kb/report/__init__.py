"""The only place that makes Markdown, HTML, PDF or SVG."""
