// The ESM form of Node's module reads all its exports, also WebSocket, which loads a second HTTP client that is not used.
module.exports = globalThis.process.getBuiltinModule('node:http');
