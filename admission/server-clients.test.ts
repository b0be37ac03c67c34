import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { AdmissionClient } from '../test/https/admission-client.js';
import {
  type Authority,
  type ServingCertificate,
  makeAuthority,
  makeClientCertificate,
  makeServingCertificate,
} from '../test/https/certificate.js';
import { ClientCa } from './component.js';
import { AdmissionServer } from './server.js';

describe('an admission server that verifies its clients', function () {
  this.timeout(30_000); // RSA keys
  let serving: ServingCertificate;
  let authority: Authority;
  let other: Authority;
  let client: { cert: string; key: string };
  let directory: string;
  let clientCa: ClientCa;
  let server: AdmissionServer;
  let answered: number;
  let loads: number;
  let waiting: (() => void)[];

  before(() => {
    serving = makeServingCertificate();
    authority = makeAuthority('clients');
    other = makeAuthority('others');
    client = makeClientCertificate(authority, 'kube-apiserver');
  });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'holdfast-client-ca-'));
    [answered, loads, waiting] = [0, 0, []];
  });
  afterEach(async () => {
    await clientCa.stop();
    await server.stop();
    await rm(directory, { recursive: true });
  });

  async function start(allowedNames: string[] = []): Promise<void> {
    server = new AdmissionServer({
      address: { host: '127.0.0.1', port: 0 },
      minVersion: 'TLSv1.2',
      clients: { allowedNames },
      routes: {
        '/mutate-launcher-pods': () => {
          answered += 1;
          return Promise.resolve('{}');
        },
      },
      log: silentLogger,
    });
    await server.listen();
    server.setCertificate(serving);
    clientCa = new ClientCa({ file: join(directory, 'ca.crt'), clock: systemClock, log: silentLogger });
    clientCa.start((pem) => {
      server.setClientAuthorities(pem);
      loads += 1;
      for (const tell of waiting.splice(0)) tell();
    });
  }

  async function trust(...authorities: Authority[]): Promise<void> {
    const before = loads;
    await writeFile(join(directory, 'ca.crt'), authorities.map(({ cert }) => cert).join(''));
    while (loads === before) await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** @returns the status and the body of the answer, or the error of a connection that fails */
  async function send(shown?: { cert: string; key: string }, maxVersion?: 'TLSv1.2'): Promise<string> {
    const { cert, key } = shown ?? {};
    const pair = cert && key ? { cert, key } : {};
    const tls = { ca: serving.ca, ...pair, ...(maxVersion && { maxVersion }) };
    const sender = new AdmissionClient(server.port, tls);
    try {
      const { status, body } = await sender.send({ body: '{}' });
      return `${status} ${body.trim()}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    } finally {
      sender.close();
    }
  }

  it('answers only clients with a certificate that the CA signed', async () => {
    await start();
    await trust(authority);
    const strangers = {
      'no certificate': undefined,
      'a certificate of another CA': makeClientCertificate(other, 'kube-apiserver'),
      'a certificate that is for servers': makeClientCertificate(authority, 'kube-apiserver', 'serverAuth'),
      'a certificate that signs itself': makeServingCertificate(),
    };
    for (const [name, shown] of Object.entries(strangers)) {
      for (const version of [undefined, 'TLSv1.2'] as const) {
        expect(await send(shown, version), name).to.match(/^(ERR_SSL|ECONNRESET|EPIPE|EPROTO)/);
      }
    }
    expect(answered).to.equal(0);
    expect(await send(client)).to.equal('200 {}');
    expect(await send(client, 'TLSv1.2')).to.equal('200 {}');
  });

  it('answers only clients with allowed names, and rejects others before it reads a body', async () => {
    await start(['kube-apiserver', 'front-proxy']);
    await trust(authority);
    expect(await send(client)).to.equal('200 {}');
    const rejected = await send(makeClientCertificate(authority, 'tenant'));
    expect(rejected).to.equal('403 the client certificate is for "tenant", not for kube-apiserver or front-proxy');
    expect(answered).to.equal(1);
  });

  it('verifies clients with the new CA after the file has changed', async () => {
    await start();
    await trust(other);
    expect(await send(client)).not.to.match(/^200/);
    await trust(other, authority);
    expect(await send(client)).to.equal('200 {}');
    await trust(other);
    expect(await send(client)).not.to.match(/^200/);
  });

  it('answers no client until the CA can be read, reports that, and keeps the last valid CA', async () => {
    await start();
    expect(clientCa.ready()).to.include('ca.crt');
    expect(await send(client)).not.to.match(/^200/);
    await trust(authority);
    expect(clientCa.ready()).to.equal(undefined);
    await writeFile(join(directory, 'ca.crt'), 'no certificate');
    await trust(authority, other);
    expect(await send(client)).to.equal('200 {}');
  });
});
