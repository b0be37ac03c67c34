import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { describeLoadError, isPair, readCertificate, validityProblem } from '../tls/pem.js';
import type { ServingPair } from '../tls/certificate-source.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Lifetimes, and the time between changes. */
export const CA_LIFETIME_MS = 365 * DAY_MS;
export const SERVING_LIFETIME_MS = 90 * DAY_MS;
/**
 * Certificates are valid from this time before their creation, because the clock of a replica may be ahead. It is the usual lifetime of an API
 * server's certificate: two replicas that both trust it have clocks that differ less.
 */
export const BACKDATE_MS = 365 * DAY_MS;
/** A new CA is trusted for this time before it signs a served certificate: by then, every API server has read it. */
export const CA_PROPAGATION_MS = HOUR_MS;
/** API servers that follow the configuration have read it after this time. It counts if the configuration could not be written for longer. */
export const TRUST_MS = 10_000;
/** An old CA stays trusted for this time after its last certificate was replaced: by then, every replica has read the new one. */
export const CA_OVERLAP_MS = HOUR_MS;

/** The content of the Secret, as PEM. */
export interface TlsMaterial {
  /** Newest first; all of them must be trusted. */
  authorities: readonly string[];
  /** The key of the newest CA. */
  authorityKey: string;
  cert: string;
  key: string;
}

interface CertificateCircumstances {
  now: number;
  /** DNS names and IP addresses that the certificate must cover. */
  names: readonly string[];
  /** For how long the configuration has trusted the newest CA, as far as this replica has seen. */
  trustedMs: number;
}

export type CertificateAction =
  /** Nothing to do until `until`. */
  | { action: 'keep'; until: number }
  /** Create everything again, because the material cannot be used. */
  | { action: 'make-all'; reason: string }
  /** Create a CA that is trusted with the others and signs nothing yet. */
  | { action: 'add-authority'; reason: string }
  /** Sign a new serving certificate with the newest CA. */
  | { action: 'renew-serving'; reason: string }
  /** Sign a new serving certificate that keeps the names of the present one, because a replica with other flags needs them. */
  | { action: 'add-names'; reason: string }
  /** Trust only the newest CA. */
  | { action: 'drop-authorities'; reason: string };

export type CertificateStep = Exclude<CertificateAction['action'], 'keep'>;

/** Decides the next step for the certificates. It is called again after each step. */
export function planCertificates(
  material: TlsMaterial | undefined,
  circumstances: CertificateCircumstances,
): CertificateAction {
  if (material === undefined) return { action: 'make-all', reason: 'there is no certificate' };
  const authorities = readCertificates(material.authorities);
  const newest = authorities?.[0];
  if (authorities === undefined || newest === undefined) return { action: 'make-all', reason: 'the CA cannot be read' };
  const { now, names, trustedMs } = circumstances;
  const flaw = problemOfAuthority(newest, material.authorityKey, now);
  if (flaw !== undefined) return { action: 'make-all', reason: flaw };
  const serving = readServing(material, authorities, now);
  if (typeof serving === 'string') return { action: 'renew-serving', reason: serving };
  const missing = names.find((name) => !coversName(serving, name));
  if (missing !== undefined)
    return { action: 'add-names', reason: `the serving certificate does not cover ${missing}` };
  return planByAge({ serving, authorities, newest }, now, trustedMs);
}

/**
 * Returns the certificate that a replica serves, with its CA, if API servers trust it. The key of the CA is unknown, so the CA must be replaced. If
 * the Secret cannot be used, this is stored, so that no review fails.
 */
export function recoverMaterial(
  served: ServingPair | undefined,
  trusted: readonly string[],
  now: number,
): TlsMaterial | undefined {
  if (served === undefined) return undefined;
  const issuer = trusted.find((pem) => {
    const authority = readCertificate(pem);
    if (authority === undefined || validityProblem(authority, now) !== undefined) return false;
    return typeof readServing(served, [authority], now) !== 'string';
  });
  return issuer === undefined ? undefined : { ...served, authorities: [issuer], authorityKey: '' };
}

interface Chain {
  serving: X509Certificate;
  /** Newest first. */
  authorities: readonly X509Certificate[];
  newest: X509Certificate;
}

/** Decides by age, for certificates that are all valid. */
function planByAge({ serving, authorities, newest }: Chain, now: number, trustedMs: number): CertificateAction {
  const authorityDue = renewalTimeOf(newest, CA_LIFETIME_MS);
  if (now >= authorityDue) return { action: 'add-authority', reason: 'two thirds of the lifetime of the CA are over' };
  if (!isIssuedBy(serving, newest)) {
    const settled = creationTimeOf(newest, CA_LIFETIME_MS) + CA_PROPAGATION_MS;
    if (now < settled) return { action: 'keep', until: settled };
    // API servers that do not trust the new CA yet would reject its certificate
    if (trustedMs < TRUST_MS) return { action: 'keep', until: now + TRUST_MS - trustedMs };
    return { action: 'renew-serving', reason: 'there is a new CA, and it is trusted' };
  }
  const servingDue = renewalTimeOf(serving, SERVING_LIFETIME_MS);
  if (now >= servingDue) {
    return { action: 'renew-serving', reason: 'two thirds of the lifetime of the serving certificate are over' };
  }
  const until = Math.min(authorityDue, servingDue);
  if (authorities.length === 1) return { action: 'keep', until };
  const dropAt = creationTimeOf(serving, SERVING_LIFETIME_MS) + CA_OVERLAP_MS;
  if (now < dropAt) return { action: 'keep', until: Math.min(until, dropAt) };
  return { action: 'drop-authorities', reason: 'no certificate of the old CA is in use any more' };
}

function problemOfAuthority(certificate: X509Certificate, key: string, now: number): string | undefined {
  if (!isPair(certificate, key)) return 'the key of the CA does not match its certificate';
  const problem = validityProblem(certificate, now);
  return problem && `the CA ${problem}`;
}

/** @returns the certificate, or why it cannot be used */
function readServing(
  material: ServingPair,
  authorities: readonly X509Certificate[],
  now: number,
): X509Certificate | string {
  const certificate = readCertificate(material.cert);
  if (certificate === undefined) return 'the serving certificate cannot be read';
  if (!isPair(certificate, material.key)) return 'the key does not match the serving certificate';
  const loadError = describeLoadError(material);
  const problem = loadError === undefined ? validityProblem(certificate, now) : `cannot be loaded: ${loadError}`;
  if (problem !== undefined) return `the serving certificate ${problem}`;
  if (!authorities.some((authority) => isIssuedBy(certificate, authority))) {
    return 'the serving certificate is not signed by our CA';
  }
  return certificate;
}

function readCertificates(pems: readonly string[]): X509Certificate[] | undefined {
  const certificates = pems.map(readCertificate);
  return certificates.includes(undefined) ? undefined : (certificates as X509Certificate[]);
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function coversName(certificate: X509Certificate, name: string): boolean {
  return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
}

/** By the end of the validity: how long it began before the creation depends on the version that created it. */
function creationTimeOf({ validTo }: X509Certificate, lifetimeMs: number): number {
  return Date.parse(validTo) - lifetimeMs;
}

function renewalTimeOf(certificate: X509Certificate, lifetimeMs: number): number {
  return creationTimeOf(certificate, lifetimeMs) + (lifetimeMs * 2) / 3;
}
