import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { expect } from 'chai';
import { Counter, Registry } from 'prom-client';
import { silentLogger } from '../kube/log.js';
import { type ProbeServer, type ReadinessCheck, serveProbes } from './probes.js';

const LOOPBACK = '127.0.0.1:0';

describe('serveProbes', () => {
  let probes: ProbeServer | undefined;
  const registry = new Registry();
  new Counter({ name: 'seen_total', help: 'Seen.', registers: [registry] }).inc(3);

  async function serve(checks: ReadinessCheck[], health = LOOPBACK, metrics = health): Promise<ProbeServer> {
    const addresses = { healthBindAddress: health, metricsBindAddress: metrics };
    probes = await serveProbes({ ...addresses, checks, registry, log: silentLogger });
    return probes;
  }

  async function get(port: number | undefined, path: string, method = 'GET') {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, { method });
    return { status: response.status, body: await response.text() };
  }

  afterEach(async () => {
    await probes?.close();
    probes = undefined;
  });

  it('reports a process as alive that is not ready', async () => {
    const { healthPort } = await serve([{ name: 'webhook', run: () => 'no certificate yet' }]);
    expect((await get(healthPort, '/healthz')).status).to.equal(200);
    expect((await get(healthPort, '/readyz')).status).to.equal(503);
  });

  it('reports which check fails, and why', async () => {
    const { healthPort } = await serve([
      { name: 'controller', run: () => undefined },
      { name: 'webhook', run: () => 'no certificate yet' },
    ]);
    const { body } = await get(healthPort, '/readyz');
    expect(body).to.equal('[+] controller\n[-] webhook: no certificate yet\nnot ready\n');
  });

  it('reports a process as ready that has a notice, and shows the notice', async () => {
    const { healthPort } = await serve([
      { name: 'ipam', run: () => undefined, notice: () => 'the ConfigMap is missing' },
    ]);
    const body = '[+] ipam\n[!] ipam: the ConfigMap is missing\nready\n';
    expect(await get(healthPort, '/readyz')).to.deep.equal({ status: 200, body });
  });

  it('reports ready as soon as the checks pass', async () => {
    let failure: string | undefined = 'starting';
    const { healthPort } = await serve([{ name: 'webhook', run: () => failure }]);
    expect((await get(healthPort, '/readyz')).status).to.equal(503);
    failure = undefined;
    expect(await get(healthPort, '/readyz?verbose')).to.deep.equal({ status: 200, body: '[+] webhook\nready\n' });
  });

  it('reports not ready if a check throws, and keeps serving', async () => {
    const fail = () => {
      throw new Error('broken check');
    };
    const { healthPort } = await serve([{ name: 'webhook', run: fail }]);
    expect((await get(healthPort, '/readyz')).status).to.equal(500);
    expect((await get(healthPort, '/healthz')).status).to.equal(200);
  });

  it('serves metrics on their own address', async () => {
    const { healthPort, metricsPort } = await serve([]);
    expect(healthPort).not.to.equal(metricsPort);
    expect((await get(metricsPort, '/metrics')).body).to.include('seen_total 3');
    expect((await get(healthPort, '/metrics')).status).to.equal(404);
  });

  it('serves everything on one address if both are the same', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => free.once('listening', resolve));
    const address = `127.0.0.1:${String((free.address() as AddressInfo).port)}`;
    await new Promise((resolve) => free.close(resolve));
    const { healthPort, metricsPort } = await serve([], address);
    expect(healthPort).to.equal(metricsPort);
    expect((await get(healthPort, '/metrics')).body).to.include('seen_total 3');
    expect((await get(healthPort, '/readyz')).status).to.equal(200);
  });

  it('serves nothing at address 0', async () => {
    const none = { healthPort: undefined, metricsPort: undefined };
    expect(await serve([], '0')).to.include(none);
  });

  it('rejects other paths and methods', async () => {
    const { healthPort } = await serve([]);
    const body = 'not found; available paths: /healthz, /readyz\n';
    expect(await get(healthPort, '/')).to.deep.equal({ status: 404, body });
    expect((await get(healthPort, '/constructor')).status).to.equal(404);
    expect((await get(healthPort, '/healthz', 'POST')).status).to.equal(405);
  });

  it('answers while a client keeps many connections open, and closes the oldest of them', async () => {
    const { healthPort = 0 } = await serve([]);
    const held = Array.from({ length: 100 }, () => createConnection(healthPort, '127.0.0.1'));
    await Promise.all(held.map((socket) => once(socket.resume(), 'connect')));
    const oldest = held[0]!;
    if (!oldest.closed) await once(oldest, 'close');
    expect((await get(healthPort, '/healthz')).status).to.equal(200);
    for (const socket of held) socket.destroy();
  });

  it('names the address on which it cannot listen', async () => {
    const { healthPort } = await serve([]);
    const taken = `127.0.0.1:${String(healthPort)}`;
    let message = '';
    await serve([], taken, '0').catch((error: unknown) => (message = String(error)));
    expect(message).to.include(`cannot listen on ${taken}`).and.to.include('EADDRINUSE');
  });

  it('stops to listen when it is closed', async () => {
    const { healthPort, close } = await serve([]);
    await close();
    let failed = false;
    await get(healthPort, '/healthz').catch(() => (failed = true));
    expect(failed).to.equal(true);
  });
});
