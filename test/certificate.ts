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
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  certificate.serialNumber = '01';
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z');
  certificate.validity.notAfter = new Date('2120-01-01T00:00:00Z');
  const name = [{ name: 'commonName', value: 'fault-server' }];
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.setExtensions([
    { name: 'basicConstraints', cA: true },
    {
      name: 'subjectAltName',
      altNames: [
        { type: 7, ip: '127.0.0.1' },
        { type: 2, value: 'localhost' },
      ],
    },
  ]);
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create());
  const pem = forge.pki.certificateToPem(certificate);
  return { key: privateKey, cert: pem, ca: pem };
}
