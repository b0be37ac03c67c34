import type { Secret } from '../kube/resources.js';
import { type TlsMaterial, splitPem } from './certificate-plan.js';

/** The keys of the Secret: those of type kubernetes.io/tls, and the CA's. `ca.crt` holds every CA that is trusted, newest first. */
const CERT = 'tls.crt';
const KEY = 'tls.key';
const AUTHORITIES = 'ca.crt';
const AUTHORITY_KEY = 'ca.key';

/** @returns undefined where something is missing; what is broken is for the judgement to find */
export function readMaterial({ data = {} }: Secret): TlsMaterial | undefined {
  const [cert, key, authorities, authorityKey] = [CERT, KEY, AUTHORITIES, AUTHORITY_KEY].map((name) =>
    Buffer.from(data[name] ?? '', 'base64').toString('utf8'),
  );
  if (!cert || !key || !authorities || !authorityKey) return undefined;
  return { cert, key, authorities: splitPem(authorities), authorityKey };
}

/** The Secret with new material; all else in it stays. */
export function writeMaterial(secret: Secret, material: TlsMaterial): Secret {
  const text = {
    [CERT]: material.cert,
    [KEY]: material.key,
    [AUTHORITIES]: material.authorities.join(''),
    [AUTHORITY_KEY]: material.authorityKey,
  };
  const encoded = Object.entries(text).map(([name, value]) => [name, Buffer.from(value).toString('base64')]);
  return {
    ...secret,
    data: { ...secret.data, ...(Object.fromEntries(encoded) as Secret['data']) },
  };
}
