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

/** A certificate may begin so much later than now, because clocks differ. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** Returns why the certificate is not valid at this time; undefined if it is. */
export function validityProblem(
  { validFrom, validTo }: X509Certificate,
  now: number,
): 'has expired' | 'is not valid yet' | undefined {
  if (now >= Date.parse(validTo)) return 'has expired';
  return now + CLOCK_TOLERANCE_MS < Date.parse(validFrom) ? 'is not valid yet' : undefined;
}

/** Returns a message if the certificate is not valid at this time; undefined if it is, or cannot be read. */
export function describeInvalidity(pem: string, now: number): string | undefined {
  const certificate = readCertificate(pem);
  const problem = certificate && validityProblem(certificate, now);
  if (certificate === undefined || problem === undefined) return undefined;
  const { validFrom, validTo } = certificate;
  return problem === 'has expired'
    ? `the certificate expired at ${new Date(validTo).toISOString()}: see the log for why it was not renewed`
    : `the certificate is not valid before ${new Date(validFrom).toISOString()}: check the clocks of this node and of the program that created it`;
}

/** Returns the DNS names and IP addresses that a certificate covers; none if it cannot be read. */
export function namesIn(pem: string): string[] {
  const names = readCertificate(pem)?.subjectAltName?.split(', ') ?? [];
  return names.map((name) => name.replace(/^(DNS|IP Address):/, ''));
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
