//! Behind nginx, by the very lines that the documentation gives.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::process::{Served, ask, demanded, done, get, haft, package, read_answer};

struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ended_already = self.0.wait();
    }
}

/// The lines between the fences of the first block of this kind.
fn block<'t>(text: &'t str, kind: &str) -> &'t str {
    let start = text.find(&format!("```{kind}\n")).unwrap() + kind.len() + 4;
    &text[start..start + text[start..].find("```").unwrap()]
}

#[test]
fn the_documented_lines_for_nginx_work() {
    let found = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    let found = found.into_iter().find(|path| std::path::Path::new(path).is_file());
    let Some(nginx) = demanded("nginx", found) else { return };
    let home = tempfile::tempdir().unwrap();
    let made = done(haft(home.path()).args(["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let page =
        std::fs::read_to_string(crate::common::repository().join("docs/operating.md")).unwrap();
    let unit = block(&page, "ini").replace("127.0.0.1:7070", "127.0.0.1:0");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut command = haft(home.path());
    command.args(start.split(' ').skip(1)).args(["--json", "--reads-per-minute", "10"]);
    command.stderr(Stdio::null());
    let served = Served::start(command);
    let port = testkit::ports::unused();
    let lines = block(&page, "nginx")
        .replace("127.0.0.1:7070", &served.address)
        .replace("listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};"));
    let lines: String = lines
        .lines()
        .filter(|line| !line.contains("ssl_certificate"))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = home.path().display();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    let config = format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{lines}}}\n"
    );
    let path = home.path().join("nginx.conf");
    std::fs::write(&path, &config).unwrap();
    // Its workers are not root and write into the folder.
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .unwrap();
    let proxy = Command::new(nginx)
        .arg("-c")
        .arg(&path)
        .args(["-p", &folder.to_string()])
        .stderr(Stdio::null())
        .spawn();
    let _proxy = Proxy(proxy.unwrap());
    let address = format!("127.0.0.1:{port}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while get(&address, "/healthz").is_err() {
        assert!(
            Instant::now() < deadline,
            "{}",
            std::fs::read_to_string(home.path().join("error.log")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    // Larger than what nginx takes by itself, which is one mebibyte.
    let noise: String = (0..400_000_u64)
        .map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let (bytes, digest) = package("acme.large", "1.0.0", &noise);
    assert!(bytes.len() > 2 << 20, "{}", bytes.len());
    assert_eq!(ask(&address, "POST", "/v1/tools", token, &bytes).unwrap().status, 201);
    let answer = get(&address, "/v1/tools/acme.large/versions/1.0.0/package").unwrap();
    assert_eq!(package::digest::Digest::of(&answer.body).to_string(), digest);
    assert_eq!(get(&address, "/v1/tools/search?q=pdf").unwrap().json()["total"], 1);
    // An id with a slash in it is passed on as it was written.
    let missing = get(&address, "/v1/tools/acme%2Fnothing").unwrap();
    assert_eq!(missing.json()["error"]["code"], "TOOL_NOT_FOUND");
    for path in ["/metrics", "/readyz"] {
        assert_eq!(get(&address, path).unwrap().status, 404, "{path}");
    }
    // Who asks too often is counted by the address that nginx tells, and takes nothing from others.
    assert!((0..100).any(|_| get(&address, "/v1/tags").unwrap().status == 429));
    let mut other = TcpStream::connect(&address).unwrap();
    let head = "Host: registry\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";
    write!(other, "GET /v1/tags HTTP/1.1\r\n{head}").unwrap();
    assert_eq!(read_answer(&mut other).unwrap().status, 200);
}
