import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { type ServingCertificate, makeServingCertificate } from '../test/https/certificate.js';
import { CertificateDirectory, type ServingPair } from './certificate-source.js';

describe('a directory with a certificate', function () {
  this.timeout(30_000); // RSA keys
  let directory: string;
  let first: ServingCertificate;
  let second: ServingCertificate;
  let source: CertificateDirectory;
  let now: number;
  let used: ServingPair[];
  let waiting: (() => void)[];
  let warnings: string[];

  before(() => {
    first = makeServingCertificate();
    second = makeServingCertificate();
  });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'holdfast-certificate-'));
    used = [];
    now = systemClock.wall();
    waiting = [];
    warnings = [];
    source = new CertificateDirectory({
      directory,
      clock: { ...systemClock, wall: () => now },
      log: { ...silentLogger, warn: (_fields: object, message: string) => void warnings.push(message) },
      metrics: { certificateExpires: () => undefined },
    });
  });
  afterEach(async () => {
    await source.stop();
    await rm(directory, { recursive: true });
  });

  function start(): void {
    source.start((pair) => {
      used.push(pair);
      for (const tell of waiting.splice(0)) tell();
    });
  }

  async function loaded(count: number): Promise<void> {
    while (used.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** As the kubelet does: a directory of its own for each version, and a link that is moved. */
  async function mount(version: string, pair: ServingPair): Promise<void> {
    await mkdir(join(directory, version));
    await writeFile(join(directory, version, 'tls.crt'), pair.cert);
    await writeFile(join(directory, version, 'tls.key'), pair.key);
    await symlink(version, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  }

  it('provides its certificate, and each replacement in the way of a mounted Secret', async () => {
    for (const file of ['tls.crt', 'tls.key']) await symlink(join('..data', file), join(directory, file));
    await mount('..1', first);
    start();
    await loaded(1);
    expect(source.ready()).to.be.undefined;
    await mount('..2', second);
    await loaded(2);
    expect(used.map(({ cert }) => cert)).to.deep.equal([first.cert, second.cert]);
  });

  it('provides a certificate only when both files exist and match', async () => {
    await writeFile(join(directory, 'tls.crt'), first.cert);
    await writeFile(join(directory, 'tls.key'), first.key);
    start();
    await loaded(1);
    await writeFile(join(directory, 'tls.crt'), second.cert);
    await writeFile(join(directory, 'tls.key'), second.key);
    await loaded(2);
    expect(used.at(-1)).to.deep.equal({ cert: second.cert, key: second.key });
    for (const pair of used)
      expect([first.key, second.key].indexOf(pair.key)).to.equal([first.cert, second.cert].indexOf(pair.cert));
  });

  it('is not ready after its certificate has expired, and reports that', async () => {
    await writeFile(join(directory, 'tls.crt'), first.cert);
    await writeFile(join(directory, 'tls.key'), first.key);
    start();
    await loaded(1);
    now = Date.UTC(2120, 0, 1) - 1;
    expect(source.ready()).to.be.undefined;
    now += 1;
    expect(source.ready()).to.include('expired at 2120-01-01T00:00:00.000Z');
  });

  it('is not ready, and reports why, before there is a certificate', async () => {
    await writeFile(join(directory, 'tls.crt'), first.cert);
    await writeFile(join(directory, 'tls.key'), second.key);
    start();
    await source.stop();
    expect(used).to.deep.equal([]);
    expect(source.ready()).to.include('tls.key').and.to.include('not the key of tls.crt');
  });

  it('is not ready, and reports no old certificate, if a TLS server cannot load its chain', async () => {
    await writeFile(
      join(directory, 'tls.crt'),
      `${first.cert}\n${first.cert.slice(0, 400)}\n-----END CERTIFICATE-----\n`,
    );
    await writeFile(join(directory, 'tls.key'), first.key);
    start();
    await source.stop();
    expect(used).to.deep.equal([]);
    expect(source.ready()).to.include('tls.crt, or one of them is damaged: ');
    expect(warnings[0]).to.include('no requests are answered');
  });

  it('is not ready if the server refuses the certificate', async () => {
    await writeFile(join(directory, 'tls.crt'), first.cert);
    await writeFile(join(directory, 'tls.key'), first.key);
    source.start(() => {
      throw new Error('too weak');
    });
    await source.stop();
    expect(source.ready()).to.equal('too weak');
    expect(warnings[0]).to.include('no requests are answered');
  });

  it('is not ready, and names the file, if it does not exist', async () => {
    start();
    await source.stop();
    expect(source.ready()).to.match(/no such file.*tls\.(crt|key)/);
  });
});
