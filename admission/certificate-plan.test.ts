import { expect } from 'chai';
import {
  BACKDATE_MS,
  CA_LIFETIME_MS,
  CA_OVERLAP_MS,
  CA_PROPAGATION_MS,
  type CertificateAction,
  SERVING_LIFETIME_MS,
  TRUST_MS,
  type TlsMaterial,
  planCertificates,
  recoverMaterial,
} from './certificate-plan.js';
import { applyCertificateStep } from './certificate-step.js';
import { expiryOf, namesIn } from '../tls/pem.js';
import {
  type Issuer,
  type PemKeyPair,
  generateKeys,
  makeAuthority,
  makeServingCertificate,
} from '../tls/certificates.js';

const MADE = Date.UTC(2030, 0, 1);
const NAMES = ['holdfast-webhook.holdfast-system.svc', '127.0.0.1', '::1'];

describe('the plan for certificates', function () {
  this.timeout(20_000); // RSA keys
  let keys: Record<'first' | 'second' | 'serving' | 'other', PemKeyPair>;
  /** One CA, and what it signed. */
  let fresh: TlsMaterial;
  /** Half a year later: a second CA, which has signed nothing yet. */
  let staged: TlsMaterial;
  const stagedAt = MADE + CA_LIFETIME_MS / 2;
  /** What the second CA signed. */
  let moved: TlsMaterial;
  const movedAt = stagedAt + CA_PROPAGATION_MS;

  before(async () => {
    const [first, second, serving, other] = await Promise.all([
      generateKeys(),
      generateKeys(),
      generateKeys(),
      generateKeys(),
    ]);
    keys = { first, second, serving, other };
    const oldCa = authority(first, MADE);
    const newCa = authority(second, stagedAt);
    fresh = { authorities: [oldCa.cert], authorityKey: oldCa.key, ...signed(oldCa, MADE) };
    staged = { authorities: [newCa.cert, oldCa.cert], authorityKey: newCa.key, ...signed(oldCa, stagedAt) };
    moved = { ...staged, ...signed(newCa, movedAt) };
  });

  const fixedKeys = () => Promise.resolve(keys.serving);

  function authority(pair: PemKeyPair, now: number): Issuer {
    const validity = { notBefore: now - BACKDATE_MS, notAfter: now + CA_LIFETIME_MS };
    return { cert: makeAuthority({ keys: pair, ...validity, serial: '00ff' }), key: pair.privateKey };
  }

  function signed(issuer: Issuer, now: number): { cert: string; key: string } {
    const validity = { notBefore: now - BACKDATE_MS, notAfter: now + SERVING_LIFETIME_MS };
    const input = { keys: keys.serving, ...validity, serial: 'ff01' };
    return { cert: makeServingCertificate(input, issuer, NAMES), key: keys.serving.privateKey };
  }

  function judged(
    material: TlsMaterial | undefined,
    now: number,
    options: { names?: string[]; trustedMs?: number } = {},
  ): CertificateAction {
    const { names = NAMES, trustedMs = TRUST_MS } = options;
    return planCertificates(material, { now, names, trustedMs });
  }

  const cases: { name: string; given: () => CertificateAction; expect: CertificateAction }[] = [
    {
      name: 'wants everything where there is nothing',
      given: () => judged(undefined, MADE),
      expect: { action: 'make-all', reason: 'there is no certificate' },
    },
    {
      name: 'wants everything where the CA cannot be read',
      given: () => judged({ ...fresh, authorities: ['x'] }, MADE),
      expect: { action: 'make-all', reason: 'the CA cannot be read' },
    },
    {
      name: 'wants everything where the key of the CA is another one',
      given: () => judged({ ...fresh, authorityKey: keys.other.privateKey }, MADE),
      expect: { action: 'make-all', reason: 'the key of the CA does not match its certificate' },
    },
    {
      name: 'wants everything where the CA has expired',
      given: () => judged(fresh, MADE + CA_LIFETIME_MS),
      expect: { action: 'make-all', reason: 'the CA has expired' },
    },
    {
      name: 'wants everything where the CA is not valid yet',
      given: () => judged(fresh, MADE - BACKDATE_MS - 6 * 60_000),
      expect: { action: 'make-all', reason: 'the CA is not valid yet' },
    },
    {
      name: 'renews a serving certificate that is not valid yet',
      given: () => {
        const [cert = ''] = fresh.authorities;
        const later = signed({ cert, key: fresh.authorityKey }, MADE + BACKDATE_MS + 6 * 60_000);
        return judged({ ...fresh, ...later }, MADE);
      },
      expect: { action: 'renew-serving', reason: 'the serving certificate is not valid yet' },
    },
    {
      name: 'keeps what is young until two thirds of its life',
      given: () => judged(fresh, MADE),
      expect: { action: 'keep', until: MADE + (SERVING_LIFETIME_MS * 2) / 3 },
    },
    {
      name: 'keeps it one second before',
      given: () => judged(fresh, MADE + (SERVING_LIFETIME_MS * 2) / 3 - 1000),
      expect: { action: 'keep', until: MADE + (SERVING_LIFETIME_MS * 2) / 3 },
    },
    {
      name: 'renews the serving certificate at two thirds of its life',
      given: () => judged(fresh, MADE + (SERVING_LIFETIME_MS * 2) / 3),
      expect: { action: 'renew-serving', reason: 'two thirds of the lifetime of the serving certificate are over' },
    },
    {
      name: 'renews a serving certificate that has expired',
      given: () => judged(fresh, MADE + SERVING_LIFETIME_MS),
      expect: { action: 'renew-serving', reason: 'the serving certificate has expired' },
    },
    {
      name: 'renews a serving certificate that cannot be read',
      given: () => judged({ ...fresh, cert: 'x' }, MADE),
      expect: { action: 'renew-serving', reason: 'the serving certificate cannot be read' },
    },
    {
      name: 'renews a serving certificate whose key is another one',
      given: () => judged({ ...fresh, key: keys.other.privateKey }, MADE),
      expect: { action: 'renew-serving', reason: 'the key does not match the serving certificate' },
    },
    {
      name: 'renews a serving certificate of another CA',
      given: () => judged({ ...fresh, ...signed(authority(keys.other, MADE), MADE) }, MADE),
      expect: { action: 'renew-serving', reason: 'the serving certificate is not signed by our CA' },
    },
    {
      name: 'adds names that the serving certificate does not cover',
      given: () => judged(fresh, MADE, { names: [...NAMES, 'elsewhere.example'] }),
      expect: { action: 'add-names', reason: 'the serving certificate does not cover elsewhere.example' },
    },
    {
      name: 'adds addresses that the serving certificate does not cover',
      given: () => judged(fresh, MADE, { names: ['192.0.2.1'] }),
      expect: { action: 'add-names', reason: 'the serving certificate does not cover 192.0.2.1' },
    },
    {
      name: 'does not use a new CA in its first hour',
      given: () => judged(staged, stagedAt + 1000),
      expect: { action: 'keep', until: stagedAt + CA_PROPAGATION_MS },
    },
    {
      name: 'does not use a new CA that is not trusted, however old it is',
      given: () => judged(staged, movedAt, { trustedMs: 0 }),
      expect: { action: 'keep', until: movedAt + TRUST_MS },
    },
    {
      name: 'does not use a new CA before all API servers have read that it is trusted, however old it is',
      given: () => judged(staged, movedAt, { trustedMs: TRUST_MS - 1 }),
      expect: { action: 'keep', until: movedAt + 1 },
    },
    {
      name: 'uses a new CA that is trusted',
      given: () => judged(staged, movedAt),
      expect: { action: 'renew-serving', reason: 'there is a new CA, and it is trusted' },
    },
    {
      name: 'trusts the old CA on while replicas may still show what it signed',
      given: () => judged(moved, movedAt + 1000),
      expect: { action: 'keep', until: movedAt + CA_OVERLAP_MS },
    },
    {
      name: 'drops the old CA after that',
      given: () => judged(moved, movedAt + CA_OVERLAP_MS),
      expect: { action: 'drop-authorities', reason: 'no certificate of the old CA is in use any more' },
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      expect(given()).to.deep.equal(expected);
    });
  }

  it('recovers what a replica serves only while the CA is valid that API servers trust', () => {
    const issuer = authority(keys.first, MADE);
    const outliving = signed(issuer, MADE + CA_LIFETIME_MS);
    const recoveredAt = (now: number) => recoverMaterial(outliving, [issuer.cert], now)?.authorities;
    expect(recoveredAt(MADE + CA_LIFETIME_MS - 1)).to.deep.equal([issuer.cert]);
    expect(recoveredAt(MADE + CA_LIFETIME_MS)).to.equal(undefined);
  });

  it('adds a CA at two thirds of the lifetime of the old one, before it renews anything else', () => {
    const now = MADE + (CA_LIFETIME_MS * 2) / 3;
    const [ca = ''] = fresh.authorities;
    const late = { ...fresh, ...signed({ cert: ca, key: fresh.authorityKey }, now - (SERVING_LIFETIME_MS * 3) / 4) };
    const reason = 'two thirds of the lifetime of the CA are over';
    expect(judged(late, now)).to.deep.equal({ action: 'add-authority', reason });
  });

  it('never lets a serving certificate outlive its CA', async () => {
    const end = MADE + CA_LIFETIME_MS;
    const { cert } = await applyCertificateStep('renew-serving', fresh, { now: end - 5000, names: NAMES });
    expect(expiryOf(cert)).to.equal(end);
  });

  it('keeps at most 16 names of earlier flags, the latest ones, until the next renewal', async () => {
    let material = fresh;
    for (let count = 1; count <= 20; count++) {
      const names = ['service', `host-${count}`];
      material = await applyCertificateStep('add-names', material, { now: MADE, names, generateKeys: fixedKeys });
    }
    const hosts = Array.from({ length: 15 }, (_, index) => `host-${20 - index}`);
    expect(namesIn(material.cert)).to.have.members(['service', ...hosts]);
    const input = { now: MADE, names: NAMES, generateKeys: fixedKeys };
    const added = await applyCertificateStep('add-names', fresh, { ...input, names: ['service'] });
    expect(judged(added, MADE, { names: [...NAMES, 'service'] }).action).to.equal('keep');
    const renewed = await applyCertificateStep('renew-serving', added, input);
    expect(judged(renewed, MADE, { names: ['service'] }).action).to.equal('add-names');
  });

  it('accepts clocks that are a year slow, and a few minutes more', () => {
    expect(judged(fresh, MADE - BACKDATE_MS - 5 * 60_000).action).to.equal('keep');
  });
});
