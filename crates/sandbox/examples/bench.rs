fn main() {
    use sandbox::*;
    let mut args = std::env::args().skip(1);
    let launcher = std::path::PathBuf::from(args.next().unwrap());
    let target = args.next().unwrap();
    let n: usize = args.next().unwrap().parse().unwrap();
    let l = Launcher::start(&launcher).unwrap();
    let t: std::path::PathBuf = target.clone().into();
    let c = Confinement {
        readable: vec![t],
        stdout: Stream::Null,
        stderr: Stream::Null,
        ..Default::default()
    };
    let mut v: Vec<_> = (0..n)
        .map(|_| {
            let a = std::time::Instant::now();
            let e = l.spawn(&c, &[target.clone().into()]).unwrap().wait();
            assert_eq!(e.exit, Exit::Code(0));
            a.elapsed()
        })
        .collect();
    v.sort();
    println!("seq p50 {:?} p95 {:?}", v[n / 2], v[n * 95 / 100]);
    let l = l.keeping_ready(4);
    let a = std::time::Instant::now();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..n / 4 {
                    l.spawn(&c, &[target.clone().into()]).unwrap().wait();
                }
            });
        }
    });
    println!("4 parallel: {:.0}/s", n as f64 / a.elapsed().as_secs_f64());
    let mut v: Vec<_> = (0..n)
        .map(|_| {
            let a = std::time::Instant::now();
            std::process::Command::new(&target).status().unwrap();
            a.elapsed()
        })
        .collect();
    v.sort();
    println!("plain p50 {:?}", v[n / 2]);
}
