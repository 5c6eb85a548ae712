//! A program that says at which port it is reached, until this is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Program {
    program: Child,
    port: u16,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { program, port: said.trim().parse().unwrap() }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended_already = self.program.kill();
        let _ended_already = self.program.wait();
    }
}
