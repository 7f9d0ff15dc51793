//! nginx, whose files are included in the block `http` of a main file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::Program;

pub(super) const PROGRAM: Program = Program {
    name: "nginx",
    variable: "NGINX",
    remedy: "on Debian or Ubuntu: sudo apt-get install nginx",
    elsewhere: &["/usr/sbin/nginx", "/usr/local/sbin/nginx"],
    is_packaged: true,
    prepare,
};

fn prepare(program: &Path, folder: &Path) -> Vec<OsString> {
    let included = super::file_ending(folder, ".conf");
    let place = folder.display();
    let main = folder.join("main.conf");
    // One process, so that its end is the end of all.
    let text = format!(
        "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr info;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {place}/body;\n  \
         proxy_temp_path {place}/proxy;\n  fastcgi_temp_path {place}/fastcgi;\n  \
         uwsgi_temp_path {place}/uwsgi;\n  scgi_temp_path {place}/scgi;\n  \
         include {};\n}}\n",
        included.display()
    );
    fs::write(&main, text).expect("the main file is written");
    let words = [program.as_os_str(), "-p".as_ref(), folder.as_ref(), "-c".as_ref(), main.as_ref()];
    words.map(OsString::from).into()
}
