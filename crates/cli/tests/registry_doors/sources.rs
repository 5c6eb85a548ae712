//! Others who are imported from, as badly as a test wants them.

use std::io::{Read, Write};
use std::net::TcpListener;

/// Answers everybody with this, and says what they asked.
pub(crate) fn hearing(body: String) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            told.send(String::from_utf8_lossy(&head[..length]).into_owned()).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    (url, heard)
}

/// Answers with these, one after the other, each as `STATUS\r\nHEADERS\r\n\r\nBODY`.
pub(crate) fn answering(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _asked = stream.read(&mut head).unwrap();
            let (status, body) = answer.split_once("\r\n\r\n").unwrap();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    url
}
