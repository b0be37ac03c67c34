import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { forward, gateSocket, openGate } from './forwarder.js';

const HOST = '127.0.0.1';

describe('A forwarder', () => {
  const temporary = process.env.TMPDIR;
  let folder: string;
  let socket: string;
  const servers: Server[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-forwarder-'));
    socket = join(folder, 'socket');
  });
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
    rmSync(folder, { recursive: true });
  });

  afterEach(() => {
    if (temporary === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = temporary;
  });

  const portOf = (server: Server) => (server.address() as AddressInfo).port;

  /** A client of a port that leads to `socket`. */
  async function client(): Promise<Socket> {
    const outside = await forward({ host: HOST, port: 0 }, { path: socket });
    servers.push(outside);
    return connect({ host: HOST, port: portOf(outside) });
  }

  it('passes bytes on in both directions, through a Unix socket', async () => {
    const echo = createServer((one) => one.pipe(one)).listen(0, HOST);
    await once(echo, 'listening');
    servers.push(echo, await forward({ path: socket }, { host: HOST, port: portOf(echo) }));
    const one = await client();
    one.end('hello');
    expect(await text(one)).to.equal('hello');
  });

  it('lets processes outside reach an API server, with a kubeconfig for them', async () => {
    const echo = createServer((one) => one.pipe(one)).listen(0, HOST);
    await once(echo, 'listening');
    const outside = await forward({ host: HOST, port: 0 }, { path: gateSocket(folder) });
    servers.push(echo, outside);
    const [inner, outer] = [echo, outside].map((one) => `https://${HOST}:${String(portOf(one))}`) as [string, string];
    const kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, `server: ${inner}`);
    process.env.TMPDIR = folder;
    const path = await openGate({ server: inner, kubeconfig }, portOf(outside));
    expect(readFileSync(path, 'utf8')).to.equal(`server: ${outer}`);
    const one = connect({ host: HOST, port: portOf(outside) });
    one.end('hello');
    expect(await text(one)).to.equal('hello');
  });

  it('ends a connection to which nobody answers', async () => {
    const one = await client();
    await once(one, 'close');
  });
});
