import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { type ServingCertificate, makeServingCertificate } from '../test/https/certificate.js';
import { CertificateDirectory, SelfSignedCertificate, type ServingPair } from './certificate-source.js';
import { X509Certificate } from 'node:crypto';
import { ManualClock } from '../test/manual-clock.js';
import { describeLoadError } from './pem.js';

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

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('a self-signed certificate', function () {
  this.timeout(30_000); // RSA keys
  let clock: ManualClock;
  let source: SelfSignedCertificate;
  let used: ServingPair[];

  beforeEach(async () => {
    clock = new ManualClock(Date.parse('2026-01-01T00:00:00Z'));
    used = [];
    const metrics = { certificateExpires: () => undefined };
    source = new SelfSignedCertificate({ names: ['localhost', '127.0.0.1'], clock, log: silentLogger, metrics });
    expect(source.ready()).to.equal('the certificate is not created yet');
    source.start((pair) => used.push(pair));
    await clock.untilAlarmsSet();
  });
  afterEach(() => source.stop());

  it('is valid for its names for 90 days', () => {
    const [pair] = used;
    expect(describeLoadError(pair!)).to.equal(undefined);
    const certificate = new X509Certificate(pair!.cert);
    expect(certificate.checkHost('localhost')).to.equal('localhost');
    expect(certificate.checkIP('127.0.0.1')).to.equal('127.0.0.1');
    expect(certificate.ca).to.equal(false);
    expect(Date.parse(certificate.validTo)).to.equal(clock.wall() + 90 * DAY_MS);
    expect(source.ready()).to.equal(undefined);
  });

  it('is replaced after 60 days, before it expires', async () => {
    await clock.stepThrough(clock.now() + 60 * DAY_MS - HOUR_MS);
    expect(used).to.have.length(1);
    await clock.stepThrough(clock.now() + HOUR_MS);
    expect(used).to.have.length(2);
    expect(used[1]!.key).not.to.equal(used[0]!.key);
    expect(source.ready()).to.equal(undefined);
  });

  it('is replaced if the clock is set back to before its creation', async () => {
    clock.setBack(365 * DAY_MS);
    await clock.stepThrough(clock.now() + HOUR_MS);
    expect(used).to.have.length(2);
    expect(Date.parse(new X509Certificate(used[1]!.cert).validFrom)).to.be.below(clock.wall());
  });
});
