import { X509Certificate, createPrivateKey } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../kube/errors.js';

/** Returns why a TLS server cannot load the certificates and the key, in the words of OpenSSL; undefined if it can. */
export function describeLoadError({ cert, key }: { cert: string; key: string }): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns when a certificate expires, in ms since the epoch; undefined if it cannot be read. */
export function expiryOf(pem: string): number | undefined {
  const certificate = readCertificate(pem);
  return certificate === undefined ? undefined : Date.parse(certificate.validTo);
}

/** Returns a message if the certificate has expired, otherwise undefined. */
export function describeExpiry(pem: string, now: number): string | undefined {
  const end = expiryOf(pem);
  if (end === undefined || now < end) return undefined;
  return `the certificate expired at ${new Date(end).toISOString()}: see the log for why it was not renewed`;
}

/** Splits a PEM text into its certificates. */
export function splitPem(pem: string): string[] {
  return (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []).map((one) => `${one}\n`);
}

/** @returns undefined if it is not a certificate as PEM */
export function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** True if the key, as PEM, belongs to the certificate. */
export function isPair(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}
