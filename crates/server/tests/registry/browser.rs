//! The pages in a real Chromium, driven from outside; `./test` installs it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use crate::suite::shelf;
use crate::suite::world::World;
use server::Blobs;
use server::settings::Reading;
use server::token::Role;

/// Set where the browser must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";
/// What a browser is called.
const BROWSERS: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

#[tokio::test(flavor = "multi_thread")]
async fn people_find_read_and_copy() {
    let tools = std::env::var_os("HAFT_BROWSER_TOOLS")
        .map_or_else(|| testkit::files::repo().join("target/tools/browser"), PathBuf::from);
    let browser = std::env::var_os("HAFT_BROWSER").map(PathBuf::from);
    let browser =
        browser.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.is_file()));
    let (Some(browser), true) = (browser, tools.join("node_modules/puppeteer-core").is_dir())
    else {
        let message = "Chromium, or what drives it, is not installed: run `./test`";
        assert!(std::env::var_os(DEMANDED).is_none(), "{message}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("registry.db").display().to_string();
    let blobs = Blobs::folder(&folder.path().join("blobs")).unwrap();
    let mut world = World::new(database, blobs, folder).await;
    shelf::fill(&world).await;
    let (address, serving) = serve(&world).await;
    // The same tools, for those who show a token.
    let reader = world.token_for("*", Role::Read, None).await;
    world.set(|settings| settings.reading = Reading::Tokens).await;
    let (private, serving_privately) = serve(&world).await;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/browser/main.mjs");
    let output = tokio::task::spawn_blocking(move || {
        let mut command = std::process::Command::new("node");
        command.arg(script).arg(address).arg(browser).arg(tools).args([private, reader]);
        command.stdin(Stdio::null());
        command.output().expect("Node is installed")
    });
    let output = output.await.unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    serving.abort();
    serving_privately.abort();
}

/// Serves what is there now; where, and what does it until it is broken off.
async fn serve(world: &World) -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let app = server::web::router(Arc::clone(&world.registry));
    (address, tokio::spawn(server::web::serve(listener, app, std::future::pending())))
}
