import { generateKeyPairSync } from 'node:crypto';
import forge from 'node-forge';

export interface ServingCertificate {
  key: string;
  cert: string;
  /** The certificate signs itself: it is its own CA. */
  ca: string;
}

/** A self-signed certificate for 127.0.0.1 and localhost. */
export function makeServingCertificate(): ServingCertificate {
  const keys = makeKeys();
  const altNames = [
    { type: 7, ip: '127.0.0.1' },
    { type: 2, value: 'localhost' },
  ];
  const extensions = [
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames },
  ];
  const cert = certify({ name: 'fault-server', keys, extensions });
  return { key: keys.privateKey, cert, ca: cert };
}

export interface Authority {
  key: string;
  /** Signed by itself. */
  cert: string;
}

export function makeAuthority(name: string): Authority {
  const keys = makeKeys();
  return { key: keys.privateKey, cert: certify({ name, keys, extensions: [{ name: 'basicConstraints', cA: true }] }) };
}

/** @param usage what the certificate may be used for, by RFC 5280 */
export function makeClientCertificate(
  authority: Authority,
  name: string,
  usage: 'clientAuth' | 'serverAuth' = 'clientAuth',
): { key: string; cert: string } {
  const keys = makeKeys();
  const extensions = [
    { name: 'basicConstraints', cA: false },
    { name: 'extKeyUsage', [usage]: true },
  ];
  return { key: keys.privateKey, cert: certify({ name, keys, extensions, authority }) };
}

interface Keys {
  privateKey: string;
  publicKey: string;
}

function makeKeys(): Keys {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
}

/** Without an authority the certificate signs itself. @returns PEM */
function certify(input: { name: string; keys: Keys; extensions: object[]; authority?: Authority }): string {
  const { name, keys, extensions, authority } = input;
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(keys.publicKey);
  certificate.serialNumber = '01';
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z');
  certificate.validity.notAfter = new Date('2120-01-01T00:00:00Z');
  const subject = [{ name: 'commonName', value: name }];
  certificate.setSubject(subject);
  certificate.setIssuer(authority ? forge.pki.certificateFromPem(authority.cert).subject.attributes : subject);
  certificate.setExtensions(extensions);
  certificate.sign(forge.pki.privateKeyFromPem(authority?.key ?? keys.privateKey), forge.md.sha256.create());
  return forge.pki.certificateToPem(certificate);
}
