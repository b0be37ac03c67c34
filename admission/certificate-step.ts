import { randomBytes } from 'node:crypto';
import {
  type Issuer,
  type PemKeyPair,
  generateKeys as generateRsaKeys,
  makeAuthority,
  makeServingCertificate,
} from '../tls/certificates.js';
import { expiryOf, namesIn } from '../tls/pem.js';
import {
  BACKDATE_MS,
  CA_LIFETIME_MS,
  type CertificateStep,
  SERVING_LIFETIME_MS,
  type TlsMaterial,
} from './certificate-plan.js';

const SERIAL_BYTES = 16;
/** Names of earlier flags stay until the next renewal: each change of --webhook-url adds one. */
const MAX_NAMES = 16;

interface CertificateStepInput {
  now: number;
  names: readonly string[];
  generateKeys?: (() => Promise<PemKeyPair>) | undefined;
}

/** Carries out a step: creates keys and certificates. */
export async function applyCertificateStep(
  step: CertificateStep,
  material: TlsMaterial | undefined,
  input: CertificateStepInput,
): Promise<TlsMaterial> {
  if (material === undefined || step === 'make-all') {
    const issuer = await newAuthority(input);
    return { authorities: [issuer.cert], authorityKey: issuer.key, ...(await newServing(issuer, input)) };
  }
  const newest = material.authorities[0] ?? '';
  switch (step) {
    case 'add-authority': {
      const { cert, key } = await newAuthority(input);
      return { ...material, authorities: [cert, ...material.authorities], authorityKey: key };
    }
    case 'renew-serving':
    case 'add-names': {
      const present = step === 'add-names' ? namesIn(material.cert) : [];
      const names = [...new Set([...input.names, ...present])].slice(0, MAX_NAMES);
      const issuer = { cert: newest, key: material.authorityKey };
      return { ...material, ...(await newServing(issuer, { ...input, names })) };
    }
    case 'drop-authorities':
      return { ...material, authorities: [newest] };
  }
}

async function newAuthority({ now, generateKeys = generateRsaKeys }: CertificateStepInput): Promise<Issuer> {
  const keys = await generateKeys();
  const validity = { notBefore: now - BACKDATE_MS, notAfter: now + CA_LIFETIME_MS };
  return { cert: makeAuthority({ keys, ...validity, serial: newSerial() }), key: keys.privateKey };
}

async function newServing(
  issuer: Issuer,
  { now, names, generateKeys = generateRsaKeys }: CertificateStepInput,
): Promise<{ cert: string; key: string }> {
  const keys = await generateKeys();
  const notAfter = Math.min(now + SERVING_LIFETIME_MS, expiryOf(issuer.cert) ?? now);
  const subject = { keys, notBefore: now - BACKDATE_MS, notAfter, serial: newSerial() };
  return { cert: makeServingCertificate(subject, issuer, names), key: keys.privateKey };
}

function newSerial(): string {
  return randomBytes(SERIAL_BYTES).toString('hex');
}
