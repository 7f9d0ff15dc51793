// Reports which ways to read a request's path lead to /login. Prints its port; ends with its input.
const http = require('http');
const path = require('path');
const legacy = require('url');

function isLogin(read) {
  try {
    return read().replace(/\/$/, '') === '/login';
  } catch {
    return false; // such as an invalid escape
  }
}

function readings(target) {
  const raw = () => target.split('?')[0];
  const whatwg = () => new URL(target, 'http://host').pathname;
  const parsed = () => legacy.parse(target).pathname;
  return {
    raw,
    whatwg,
    parsed,
    network: () => legacy.parse(target, false, true).pathname,
    rawDecoded: () => decodeURIComponent(raw()),
    whatwgDecoded: () => decodeURIComponent(whatwg()),
    parsedDecoded: () => decodeURIComponent(parsed()),
    // The steps of `serve-static`: decode, normalize.
    file: () => path.posix.normalize(decodeURIComponent(parsed())),
    windowsFile: () => path.win32.normalize(decodeURIComponent(parsed())).replaceAll('\\', '/'),
    // A proxy before the application that decodes too.
    twice: () => path.posix.normalize(decodeURIComponent(decodeURIComponent(raw()))),
  };
}

const server = http.createServer((request, response) => {
  const found = Object.entries(readings(request.url)).filter(([, read]) => isLogin(read));
  response.end(found.map(([name]) => name).join(' '));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();
