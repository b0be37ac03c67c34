import type { Secret } from '../kube/resources.js';
import { type TlsMaterial } from './certificate-plan.js';
import { splitPem } from '../tls/pem.js';

/** Keys of the Secret: those of type kubernetes.io/tls, and the CA's. `ca.crt` contains all trusted CAs, newest first. */
const CERT = 'tls.crt';
const KEY = 'tls.key';
const AUTHORITIES = 'ca.crt';
const AUTHORITY_KEY = 'ca.key';

/** @returns undefined if a key is missing; the content is not checked */
export function readMaterial({ data = {} }: Secret): TlsMaterial | undefined {
  const [cert, key, authorities, authorityKey] = [CERT, KEY, AUTHORITIES, AUTHORITY_KEY].map((name) =>
    Buffer.from(data[name] ?? '', 'base64').toString('utf8'),
  );
  if (!cert || !key || !authorities || !authorityKey) return undefined;
  return { cert, key, authorities: splitPem(authorities), authorityKey };
}

/** Returns the Secret with new material and its other content. */
export function writeMaterial(secret: Secret, material: TlsMaterial): Secret {
  const text = {
    [CERT]: material.cert,
    [KEY]: material.key,
    [AUTHORITIES]: material.authorities.join(''),
    [AUTHORITY_KEY]: material.authorityKey,
  };
  const encoded = Object.entries(text).map(([name, value]) => [name, Buffer.from(value).toString('base64')]);
  return { ...secret, data: { ...secret.data, ...(Object.fromEntries(encoded) as Secret['data']) } };
}
