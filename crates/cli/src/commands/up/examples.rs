//! The tools that a newcomer finds: the examples of this repository, as they are.

/// A package, as the folder it is written into and its files.
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) id: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// A file of an example, by its path there.
macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../examples/mcpkg/", $folder, "/", $path)))),+]
    };
}

/// Those that are published. The first three are installed, too.
pub(super) const ALL: [Example; 4] = [
    Example {
        name: "echo",
        id: "demo.echo",
        files: files!("echo": "README.md", "echo.py", "echo.mjs", "examples/basic.md", "manifest.json", "tests/echo.test.json"),
    },
    Example {
        name: "convert-units",
        id: "demo.units.convert",
        files: files!("convert-units": "convert.py", "examples/lengths.md", "manifest.json", "tests/temperature.test.json", "tests/length.test.json"),
    },
    Example {
        name: "text-clean",
        id: "demo.text.clean",
        files: files!("text-clean": "clean.py", "manifest.json", "tests/clean.test.json"),
    },
    Example {
        name: "text-stats",
        id: "demo.text.stats",
        files: files!("text-stats": "stats.mjs", "manifest.json", "tests/stats.test.json"),
    },
];

/// How many of them are installed.
pub(super) const INSTALLED: usize = 3;
