import { randomBytes } from 'node:crypto';
import {
  AUTHORITY_LIFE_MS,
  BACKDATE_MS,
  type Judgement,
  SERVING_LIFE_MS,
  type TlsMaterial,
  endOf,
} from './certificate-judgement.js';
import {
  type Issuer,
  type Keys,
  generateKeys as generateRsaKeys,
  makeAuthority,
  makeServingCertificate,
} from './certificates.js';

const SERIAL_BYTES = 16;

export type Step = Exclude<Judgement['action'], 'keep'>;

export interface StepInput {
  now: number;
  names: readonly string[];
  generateKeys?: (() => Promise<Keys>) | undefined;
}

/** Makes what a judgement asks for. */
export async function takeStep(step: Step, material: TlsMaterial | undefined, input: StepInput): Promise<TlsMaterial> {
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
      return { ...material, ...(await newServing({ cert: newest, key: material.authorityKey }, input)) };
    case 'drop-authorities':
      return { ...material, authorities: [newest] };
  }
}

async function newAuthority({ now, generateKeys = generateRsaKeys }: StepInput): Promise<Issuer> {
  const keys = await generateKeys();
  const validity = { notBefore: now - BACKDATE_MS, notAfter: now + AUTHORITY_LIFE_MS };
  return { cert: makeAuthority({ keys, ...validity, serial: newSerial() }), key: keys.privateKey };
}

async function newServing(
  issuer: Issuer,
  { now, names, generateKeys = generateRsaKeys }: StepInput,
): Promise<{ cert: string; key: string }> {
  const keys = await generateKeys();
  const validity = {
    notBefore: now - BACKDATE_MS,
    notAfter: Math.min(now + SERVING_LIFE_MS, endOf(issuer.cert) ?? now),
  };
  return {
    cert: makeServingCertificate({ keys, ...validity, serial: newSerial() }, issuer, names),
    key: keys.privateKey,
  };
}

function newSerial(): string {
  return randomBytes(SERIAL_BYTES).toString('hex');
}
