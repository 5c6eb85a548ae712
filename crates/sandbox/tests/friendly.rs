//! What works behind the walls: what ordinary programs do, without being told about them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kit::folders::Folder;
use kit::machine::until;
use kit::rooms::{launcher, output_of, python, run, shell, text, walled, walled_with, words};
use kit::users::as_each_user;
use sandbox::{Confinement, Exit, Launcher};

/// Runs a script of Python that says nothing but at its end.
fn check_python(script: &str) {
    let said = output_of(&launcher(), &walled(), &python(script));
    assert_eq!(said, "fine\n");
}

#[test]
fn python_reads_writes_and_computes() {
    as_each_user(|| {
        check_python(
            "import json, tempfile, os, hashlib, uuid, random, decimal, zlib, ssl\n\
             assert json.loads(json.dumps({'a': [1, 2.5, None]})) == {'a': [1, 2.5, None]}\n\
             with tempfile.TemporaryDirectory() as folder:\n    \
                 path = os.path.join(folder, 'file')\n    \
                 open(path, 'w').write('x' * 100000)\n    \
                 assert os.path.getsize(path) == 100000\n    \
                 os.rename(path, path + '2'); os.symlink(path + '2', path); os.link(path + '2', path + '3')\n    \
                 os.chmod(path, 0o600); os.utime(path); os.truncate(path, 5)\n    \
                 assert open(path + '3').read() == 'xxxxx'\n\
             with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile() as other:\n    \
                 file.write(b'a'); other.write(b'b')\n\
             assert os.cpu_count() >= 1 and os.getuid() == 1000\n\
             print('fine')",
        );
    });
}

#[test]
fn a_granted_device_is_there_beside_the_usual_ones() {
    as_each_user(|| {
        let launcher = launcher();
        // Of these, whoever runs the test may open some; what the kernel then refuses was there.
        let devices = ["/dev/random", "/dev/autofs", "/dev/kmsg", "/dev/net/tun", "/dev/fuse"];
        for device in devices.map(Path::new) {
            let open = |writing: bool| {
                std::fs::OpenOptions::new().read(!writing).write(writing).open(device).is_ok()
            };
            let (may_read, may_write) = (open(false), open(true));
            if !may_read && !may_write {
                continue;
            }
            let script = format!(
                "import os, pty\n\
                 def may(how):\n    \
                     try:\n        os.close(os.open({device:?}, how))\n    \
                     except OSError as error:\n        return error.errno == 1\n    \
                     return True\n\
                 print(may(os.O_RDONLY), may(os.O_WRONLY))\n\
                 assert os.read(os.open('/dev/zero', os.O_RDWR), 2) == b'\\0\\0'\n\
                 open('/dev/null', 'w').write('x'); os.listdir('/dev/fd'); open('/dev/stderr', 'w')\n\
                 master, slave = pty.openpty()\n\
                 os.write(slave, b'x'); assert os.read(master, 1) == b'x'\n\
                 open('/dev/shm/file', 'w').write('x')\n\
                 for name in ['new', 'net/new', 'zero']:\n    \
                     try:\n        os.rename('/dev/full', '/dev/' + name)\n    \
                     except OSError:\n        continue\n    \
                     raise Exception(name)"
            );
            let granting = Confinement { devices: vec![device.to_owned()], ..walled() };
            let expected = [may_read, may_write].map(|may| if may { "True" } else { "False" });
            let said = output_of(&launcher, &granting, &python(&script));
            assert_eq!(said.trim_end(), expected.join(" "), "{device:?}");
            if device != Path::new("/dev/random") {
                let said = output_of(&launcher, &walled(), &python(&script));
                assert_eq!(said, "False False\n", "{device:?}");
            }
        }
        let random = Confinement { devices: vec!["/dev/random".into()], ..walled() };
        let script = shell("head -c 4 /dev/random | wc -c; echo x > /dev/random");
        assert_eq!(output_of(&launcher, &random, &script), "4\n");
    });
}

#[test]
fn python_has_threads_and_processes() {
    as_each_user(|| {
        check_python(
            "import concurrent.futures, multiprocessing, threading, queue, asyncio, subprocess\n\
             def square(n):\n    return n * n\n\
             if __name__ == '__main__':\n    \
                 with concurrent.futures.ThreadPoolExecutor(8) as pool:\n        \
                     assert sum(pool.map(square, range(100))) == 328350\n    \
                 with multiprocessing.get_context('fork').Pool(4) as pool:\n        \
                     assert sum(pool.map(square, range(100))) == 328350\n    \
                 value = multiprocessing.Value('i', 0)\n    \
                 def add():\n        \
                     with value.get_lock():\n            value.value += 1\n    \
                 many = [multiprocessing.get_context('fork').Process(target=add) for _ in range(8)]\n    \
                 [one.start() for one in many]; [one.join() for one in many]\n    \
                 assert value.value == 8\n    \
                 async def say():\n        \
                     process = await asyncio.create_subprocess_exec('echo', 'hello', stdout=-1)\n        \
                     return (await process.communicate())[0]\n    \
                 assert asyncio.run(say()) == b'hello\\n'\n    \
                 assert subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'x', capture_output=True).returncode == 3\n    \
                 from multiprocessing import shared_memory\n    \
                 memory = shared_memory.SharedMemory(create=True, size=100000)\n    \
                 memory.buf[99999] = 1; memory.close(); memory.unlink()\n    \
                 print('fine')",
        );
    });
}

#[test]
fn python_has_a_database_and_a_network_of_its_own() {
    as_each_user(|| {
        check_python(
            "import sqlite3, socket, threading, os\n\
             base = sqlite3.connect('/tmp/base')\n\
             base.execute('pragma journal_mode=wal')\n\
             base.execute('create table t (a, b)')\n\
             base.executemany('insert into t values (?, ?)', [(n, str(n)) for n in range(1000)])\n\
             base.commit()\n\
             assert sqlite3.connect('/tmp/base').execute('select sum(a) from t').fetchone() == (499500,)\n\
             server = socket.create_server(('127.0.0.1', 0))\n\
             threading.Thread(target=lambda: server.accept()[0].sendall(b'hi')).start()\n\
             assert socket.create_connection(server.getsockname()).recv(2) == b'hi'\n\
             assert socket.gethostbyname('localhost') == '127.0.0.1' and socket.gethostname() == 'haft'\n\
             server = socket.socket(socket.AF_UNIX); server.bind('/tmp/socket'); server.listen()\n\
             client = socket.socket(socket.AF_UNIX); client.connect('/tmp/socket')\n\
             master, slave = os.openpty()\n\
             os.write(slave, b'a\\n'); assert os.read(master, 9) == b'a\\r\\n'\n\
             import pwd, grp\n\
             assert pwd.getpwuid(os.getuid()).pw_dir == '/tmp' and grp.getgrgid(os.getgid()).gr_name == 'tool'\n\
             print('fine')",
        );
    });
}

#[test]
fn an_environment_of_python_in_a_granted_folder_works() {
    as_each_user(|| {
        let path = Folder::new();
        let home = path.join("environment");
        let made = Command::new("/usr/bin/python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(&home)
            .env_remove("PYTHONHOME")
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let site = std::fs::read_dir(home.join("lib")).unwrap().next().unwrap().unwrap().path();
        std::fs::write(site.join("site-packages/ours.py"), "word = 'found'").unwrap();
        let confinement = Confinement { readable: vec![home.clone()], ..walled() };
        let argv = words([
            home.join("bin/python").as_os_str(),
            OsStr::new("-c"),
            OsStr::new("import ours, sys; print(ours.word, sys.prefix != sys.base_prefix)"),
        ]);
        assert_eq!(output_of(&launcher(), &confinement, &argv), "found True\n");
    });
}

#[test]
fn node_reads_writes_and_starts_things() {
    as_each_user(|| {
        let script = "
            const fs = require('fs'), os = require('os'), path = require('path');
            const { Worker } = require('worker_threads');
            const { execFileSync, spawn } = require('child_process');
            const assert = require('assert');
            const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'a-'));
            fs.writeFileSync(path.join(folder, 'file'), 'x'.repeat(100000));
            assert.equal(fs.readFileSync(path.join(folder, 'file'), 'utf8').length, 100000);
            assert(os.cpus().length >= 1 && os.homedir() === '/tmp' && os.userInfo().username === 'tool');
            assert.equal(execFileSync('sh', ['-c', 'echo hello']).toString(), 'hello\\n');
            (async () => {
                const answer = await new Promise((resolve, reject) => {
                    const worker = new Worker(
                        `require('worker_threads').parentPort.postMessage(6 * 7)`, { eval: true });
                    worker.on('message', resolve); worker.on('error', reject);
                });
                assert.equal(answer, 42);
                await fs.promises.writeFile(path.join(folder, 'other'), 'y');
                const server = require('http').createServer((_, reply) => reply.end('served'));
                await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
                const reply = await fetch(`http://127.0.0.1:${server.address().port}/`);
                assert.equal(await reply.text(), 'served');
                server.close();
                const code = await new Promise(resolve => spawn('sh', ['-c', 'exit 4']).on('exit', resolve));
                assert.equal(code, 4);
                require('crypto').generateKeyPairSync('ec', { namedCurve: 'P-256' });
                console.log('fine');
                process.exit(0);
            })();";
        let said = output_of(&launcher(), &walled(), &words(["/usr/bin/node", "-e", script]));
        assert_eq!(said, "fine\n");
    });
}

#[test]
fn git_works_in_the_scratch_folder() {
    as_each_user(|| {
        let script = "set -e; git init -q work; cd work; \
             git config user.email a@b.c; git config user.name Somebody; \
             echo one >file; git add file; git commit -qm first; \
             git checkout -qb other; echo two >>file; git commit -qam second; \
             git log --format=%s; git diff HEAD~1 --stat | tail -1; git gc -q; git clone -q . ../copy; \
             git -C ../copy status --short; git stash list; git fsck 2>&1 | head -1";
        let said = output_of(&launcher(), &walled(), &shell(script));
        assert_eq!(said, "second\nfirst\n 1 file changed, 1 insertion(+)\n");
    });
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn git_works_in_a_granted_repository() {
    as_each_user(|| {
        let path = Folder::new();
        git(&path, &["init", "-q"]);
        git(&path, &["config", "user.email", "a@b.c"]);
        git(&path, &["config", "user.name", "Somebody"]);
        std::fs::write(path.join("file"), "one\n").unwrap();
        git(&path, &["add", "file"]);
        git(&path, &["commit", "-qm", "first"]);
        let mut confinement = walled_with(&path);
        confinement.folder.clone_from(&path);
        let launcher = launcher();
        let said = output_of(&launcher, &confinement, &shell("git status --short"));
        assert_eq!(said, "", "a clean repository looks clean from inside");
        let script = "set -e; echo two >>file; echo new >other; git add -A; git commit -qm second; \
                      git log --format=%s; git status --short; git branch side; git tag v1";
        let said = output_of(&launcher, &confinement, &shell(script));
        assert_eq!(said, "second\nfirst\n");
        assert_eq!(git(&path, &["log", "--format=%s"]), "second\nfirst\n");
        // The launcher takes its placeholders away a moment after the end.
        let is_clean = || git(&path, &["status", "--short"]).is_empty();
        assert!(until(Duration::from_secs(2), is_clean));
        assert_eq!(git(&path, &["ls-files"]), "file\nother\n");
    });
}

#[test]
fn a_program_is_compiled_and_run_inside() {
    as_each_user(|| {
        let script = "set -e; cat >a.c <<'END'\n\
             #include <stdio.h>\n#include <pthread.h>\n\
             static void *say(void *word) { puts(word); return 0; }\n\
             int main(void) { pthread_t t; pthread_create(&t, 0, say, \"compiled\"); return pthread_join(t, 0); }\n\
             END\n\
             gcc -O2 -pthread -o a a.c; ./a";
        assert_eq!(output_of(&launcher(), &walled(), &shell(script)), "compiled\n");
    });
}

#[test]
fn the_tools_of_a_shell_work_together() {
    as_each_user(|| {
        let script = "set -e; mkdir -p a/b; for i in 3 1 2; do echo \"line $i\" >a/b/$i.txt; done; \
             find a -name '*.txt' | sort | xargs cat | awk '{ s += $2 } END { print s }'; \
             tar czf all.tgz a; rm -r a; tar xzf all.tgz; ls a/b | wc -l; \
             seq 100000 | gzip | gunzip | tail -n 1; \
             (sleep 0.05; echo late) & wait; mkfifo pipe; echo through >pipe & cat pipe; \
             cat <<END | tr a-z A-Z\nhere\nEND\n\
             test -t 1 || echo no terminal; date +%Y | grep -c '^20'; \
             diff <(:) <(:) 2>/dev/null || true; sed -n 's/line/row/p' a/b/1.txt; \
             df /tmp >/dev/null; ps >/dev/null 2>&1 || true; id -un; umask; ulimit -c";
        let said = output_of(&launcher(), &walled(), &words(["/bin/bash", "-c", script]));
        assert_eq!(
            said,
            "6\n3\n100000\nlate\nthrough\nHERE\nno terminal\n1\nrow 1\ntool\n0022\n0\n"
        );
    });
}

#[test]
fn home_time_and_language_are_what_they_should_be() {
    as_each_user(|| {
        let launcher = launcher();
        let said = output_of(
            &launcher,
            &walled(),
            &shell("echo $HOME $TMPDIR $LANG; pwd; echo ~; env | wc -l"),
        );
        // The shell adds `PWD` of its own accord.
        assert_eq!(said, "/tmp /tmp C.UTF-8\n/tmp\n/tmp\n5\n");
        let mut confinement = walled();
        confinement.environment.push(("TZ".into(), "Asia/Tokyo".into()));
        assert_eq!(
            output_of(&launcher, &confinement, &shell("date -d @0 +%H:%M%z")),
            "09:00+0900\n"
        );
        let outside =
            Command::new("date").args(["-d", "@0", "+%z"]).env_remove("TZ").output().unwrap();
        let inside = output_of(&launcher, &walled(), &shell("date -d @0 +%z"));
        assert_eq!(inside, text(&outside.stdout));
        let unicode = "printf 'größe ナ' | wc -m; python3 -c \"print(len('größe'), 'ü')\"";
        assert_eq!(output_of(&launcher, &walled(), &shell(unicode)), "7\n5 ü\n");
    });
}

#[test]
fn names_and_arguments_may_be_any_bytes() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let strange: [&[u8]; 6] = [
            "größe ナ 🙂".as_bytes(),
            b"bad\xff\xfename",
            b"new\nline",
            b"-dash",
            b"a  b\t'\"\\$`",
            b"\x1b[31m",
        ];
        let mut confinement = walled_with(&path);
        confinement.folder.clone_from(&path);
        for name in strange {
            let name = OsStr::from_bytes(name);
            let argv = words([
                OsStr::new("/bin/sh"),
                OsStr::new("-c"),
                OsStr::new("printf %s \"$1\" >\"./$1\"; printf %s \"$1\""),
                OsStr::new("sh"),
                name,
            ]);
            let finished = run(&launcher, &confinement, &argv);
            assert_eq!(finished.ended.exit, Exit::Code(0), "{}", text(&finished.stderr));
            assert_eq!(finished.stdout, name.as_bytes());
            assert_eq!(std::fs::read(path.join(name)).unwrap(), name.as_bytes());
            let mut confinement = walled();
            confinement.environment.push(("WORD".into(), name.into()));
            let finished = run(&launcher, &confinement, &shell("printf %s \"$WORD\""));
            assert_eq!(finished.stdout, name.as_bytes());
        }
    });
}

#[test]
fn a_grant_may_have_any_name() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let names: [&[u8]; 6] = [
            b"with space",
            b"with\nline",
            b"bad\xff\xfebytes",
            "größe ナ".as_bytes(),
            b"comma,colon:back\\040",
            b" ",
        ];
        for name in names {
            let granted = path.join(OsStr::from_bytes(name));
            std::fs::create_dir(&granted).unwrap();
            std::fs::write(granted.join("letter"), "hello").unwrap();
            let read = Confinement {
                readable: vec![granted.clone()],
                folder: granted.clone(),
                ..walled()
            };
            let said = output_of(
                &launcher,
                &read,
                &shell("cat letter; echo x 2>/dev/null >new || echo -closed"),
            );
            assert_eq!(said, "hello-closed\n", "{name:?}");
            let write = Confinement { folder: granted.clone(), ..walled_with(&granted) };
            output_of(&launcher, &write, &shell("echo answer >answer; rm letter"));
            assert_eq!(std::fs::read_to_string(granted.join("answer")).unwrap(), "answer\n");
            assert!(!granted.join("letter").exists());
            let single = Confinement { readable: vec![granted.join("answer")], ..walled() };
            let argv = words([OsStr::new("/bin/cat"), granted.join("answer").as_os_str()]);
            assert_eq!(output_of(&launcher, &single, &argv), "answer\n");
        }
    });
}

#[test]
fn long_lists_of_arguments_and_variables_arrive() {
    as_each_user(|| {
        let launcher = launcher();
        let long = words((0..10_000).map(|number| format!("{number:0100}")));
        let mut argv = python(
            "import os, sys; print(len(sys.argv), len(sys.argv[1]), sum(map(len, os.environ.values())))",
        );
        argv.extend(long);
        assert_eq!(output_of(&launcher, &walled(), &argv).split(' ').next().unwrap(), "10001");
        let mut confinement = walled();
        confinement.environment =
            (0..500).map(|n| (format!("V{n}").into(), "x".repeat(1000).into())).collect();
        let said = output_of(
            &launcher,
            &confinement,
            &python("import os; print(sum(len(v) for k, v in os.environ.items() if k[0] == 'V'))"),
        );
        assert_eq!(said, "500000\n");
        let one: OsString = "x".repeat(120_000).into();
        let argv = words([OsString::from("/bin/echo"), one]);
        assert_eq!(output_of(&launcher, &walled(), &argv).len(), 120_001);
        let nothing = Confinement { environment: Vec::new(), ..walled() };
        assert_eq!(output_of(&launcher, &nothing, &words(["/usr/bin/env"])), "");
        let empty = words([
            OsString::from("/usr/bin/printf"),
            "[%s]".into(),
            OsString::new(),
            "a".into(),
            OsString::from_vec(vec![0xff]),
        ]);
        assert_eq!(run(&launcher, &walled(), &empty).stdout, b"[][a][\xff]");
    });
}

#[test]
fn granted_files_and_folders_are_read_written_and_run() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        path.make("write");
        path.write("read/letter", "hello\n");
        path.write("alone", "alone\n");
        path.write("changing", "before\n");
        let tool = path.write_program("tools/tool", "#!/bin/sh\necho ran \"$@\"\n");
        let confinement = Confinement {
            readable: vec![path.join("read"), path.join("alone"), path.join("tools")],
            writable: vec![path.join("write"), path.join("changing")],
            folder: path.clone(),
            ..walled()
        };
        let script = "cat read/letter alone; tools/tool a; mkdir -p write/x/y; cp read/letter write/x/y; \
             mv write/x write/z; echo after >changing; \
             for file in read/new alone tools/tool; do (echo x >$file) 2>/dev/null && echo \"wrote $file\"; done; \
             rm -f read/letter 2>/dev/null; ls";
        let said = output_of(&launcher, &confinement, &shell(script));
        assert_eq!(said, "hello\nalone\nran a\nalone\nchanging\nread\ntools\nwrite\n");
        // What is beside the grants is the scratch folder, if anything.
        run(&launcher, &confinement, &shell("echo x >new"));
        assert!(!path.join("new").exists());
        assert_eq!(std::fs::read_to_string(path.join("write/z/y/letter")).unwrap(), "hello\n");
        assert_eq!(std::fs::read_to_string(path.join("changing")).unwrap(), "after\n");
        assert_eq!(std::fs::read_to_string(path.join("read/letter")).unwrap(), "hello\n");
        // A program is also found by its own path.
        let argv = words([tool.as_os_str(), OsStr::new("b c")]);
        assert_eq!(output_of(&launcher, &confinement, &argv), "ran b c\n");
    });
}

#[test]
fn a_file_made_inside_belongs_to_who_granted_the_folder() {
    as_each_user(|| {
        use std::os::unix::fs::MetadataExt;
        let path = Folder::new();
        output_of(
            &launcher(),
            &walled_with(&path),
            &shell(&format!("echo >'{}/new'", path.display())),
        );
        let made = std::fs::metadata(path.join("new")).unwrap();
        let own = std::fs::metadata(&*path).unwrap();
        assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()));
        assert_eq!(made.mode() & 0o777, 0o644);
    });
}

#[test]
fn links_lead_where_they_say() {
    as_each_user(|| {
        let path = Folder::new();
        std::fs::write(path.join("letter"), "hello\n").unwrap();
        let confinement = Confinement {
            readable: vec![path.clone()],
            links: vec![("/work/short".into(), path.clone())],
            ..walled()
        };
        let said = output_of(&launcher(), &confinement, &shell("cat /work/short/letter"));
        assert_eq!(said, "hello\n");
    });
}

#[test]
fn one_launcher_serves_many_threads() {
    as_each_user(|| {
        let launcher: Launcher = launcher().keeping_ready(4);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let launcher = launcher.clone();
                scope.spawn(move || {
                    for turn in 0..5 {
                        let said = output_of(
                            &launcher,
                            &walled(),
                            &shell(&format!("echo {thread} {turn}")),
                        );
                        assert_eq!(said, format!("{thread} {turn}\n"));
                    }
                });
            }
        });
    });
}
