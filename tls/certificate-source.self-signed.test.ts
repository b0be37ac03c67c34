import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { silentLogger } from '../kube/log.js';
import { ManualClock } from '../test/manual-clock.js';
import { SelfSignedCertificate, type ServingPair } from './certificate-source.js';
import { describeLoadError } from './pem.js';

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
