import { generateKeyPair } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import forge from 'node-forge';

/** PEM. */
export interface PemKeyPair {
  privateKey: string;
  publicKey: string;
}

/** Input for a certificate. Times in ms since the epoch. */
export interface CertificateInput {
  keys: PemKeyPair;
  notBefore: number;
  notAfter: number;
  /** At most 20 random bytes, hex. */
  serial: string;
}

export interface Issuer {
  /** PEM. */
  cert: string;
  key: string;
}

const RSA_BITS = 2048;

/** Generates RSA keys in the thread pool, because that is slow and reviews must not wait for it. */
export async function generateKeys(): Promise<PemKeyPair> {
  return promisify(generateKeyPair)('rsa', {
    modulusLength: RSA_BITS,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
}

/** Creates a CA that may sign only serving certificates. Each CA has its own name, so that several can be trusted together. */
export function makeAuthority(input: CertificateInput): string {
  const certificate = beginCertificate(input);
  const name = [{ name: 'commonName', value: `holdfast-ca-${input.serial.slice(0, 8)}` }];
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.setExtensions([
    { name: 'basicConstraints', critical: true, cA: true, pathLenConstraint: 0 },
    { name: 'keyUsage', critical: true, keyCertSign: true, cRLSign: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  return sign(certificate, input.keys.privateKey);
}

/**
 * Creates a serving certificate.
 * @param issuer undefined: its own key signs it
 * @param names DNS names and IP addresses
 */
export function makeServingCertificate(
  input: CertificateInput,
  issuer: Issuer | undefined,
  names: readonly string[],
): string {
  const certificate = beginCertificate(input);
  const authority = issuer && forge.pki.certificateFromPem(issuer.cert);
  const keyIdentifier = authority?.generateSubjectKeyIdentifier().getBytes();
  const subject = [{ name: 'commonName', value: 'holdfast' }];
  certificate.setSubject(subject);
  certificate.setIssuer(authority?.subject.attributes ?? subject);
  certificate.setExtensions([
    { name: 'basicConstraints', critical: true, cA: false },
    { name: 'keyUsage', critical: true, digitalSignature: true, keyEncipherment: true },
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectAltName', altNames: names.map(altName) },
    { name: 'subjectKeyIdentifier' },
    ...(keyIdentifier === undefined ? [] : [{ name: 'authorityKeyIdentifier', keyIdentifier }]),
  ]);
  return sign(certificate, issuer?.key ?? input.keys.privateKey);
}

function beginCertificate({ keys, notBefore, notAfter, serial }: CertificateInput): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(keys.publicKey);
  // a serial number is a positive integer (RFC 5280, 4.1.2.2)
  certificate.serialNumber = `0${serial.slice(1)}`;
  certificate.validity.notBefore = new Date(notBefore);
  certificate.validity.notAfter = new Date(notAfter);
  return certificate;
}

function sign(certificate: forge.pki.Certificate, key: string): string {
  certificate.sign(forge.pki.privateKeyFromPem(key), forge.md.sha256.create());
  return forge.pki.certificateToPem(certificate).replaceAll('\r\n', '\n');
}

function altName(name: string): { type: number; value?: string; ip?: string } {
  // as in RFC 5280, 4.2.1.6: 7 is an IP address, 2 a DNS name
  return isIP(name) !== 0 ? { type: 7, ip: name } : { type: 2, value: name };
}
