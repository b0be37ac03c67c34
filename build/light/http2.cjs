// undici reads these constants when it is loaded, and uses HTTP/2 only if it is told to. Node's module takes as long to load as all of undici.
module.exports = { constants: {} };
