import type { WireLocation, Wire } from '../wire.js';

export const TCP_PORT = 7007;

const SERVER = `
const [forMs] = process.argv.slice(1);
require('net').createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(${TCP_PORT});
setTimeout(() => process.exit(), Number(forMs));
`;

/** Of `node -e`, with an address and a time in milliseconds: prints `kept`, or the code of the error that ended the connection. */
export const TCP_CLIENT = `
const [address, forMs] = process.argv.slice(1);
const began = Date.now();
let connected = false;
function end(outcome) {
  process.stdout.write(outcome);
  process.exit();
}
setTimeout(() => end(connected ? 'kept' : 'never began'), Number(forMs));
(function connect() {
  const socket = require('net').connect(${TCP_PORT}, address).setNoDelay().on('data', () => {});
  socket.on('error', ({ code }) => (connected ? end(code) : setTimeout(connect, 50)));
  socket.on('connect', () => {
    connected = true;
    setInterval(() => socket.write('x'), 50);
  });
})();
`;

export interface TcpConnection {
  readonly server: WireLocation;
  readonly client: WireLocation;
  readonly address: string;
  readonly forMs: number;
}

/**
 * Holds a TCP connection on which the client sends data every 50 ms.
 * @returns `kept`, or the code of the error that ended it, such as ECONNRESET
 */
export async function holdConnection(wire: Wire, { server, client, address, forMs }: TcpConnection): Promise<string> {
  const node = (script: string, ...args: string[]) => ({ command: process.execPath, args: ['-e', script, ...args] });
  const serving = wire.run(server, node(SERVER, String(forMs + 1000)));
  const { stdout, stderr } = await wire.run(client, node(TCP_CLIENT, address, String(forMs)));
  await serving;
  return stdout || stderr;
}
