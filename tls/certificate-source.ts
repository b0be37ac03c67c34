/** The certificate and key of a TLS server, as PEM. */
export interface ServingPair {
  cert: string;
  key: string;
}

export interface CertificateMetrics {
  /** When a certificate in use expires, in ms since the epoch. */
  certificateExpires: (which: 'authority' | 'serving', at: number) => void;
}

/** Where the serving certificate comes from. */
export interface CertificateSource {
  /**
   * Starts to watch or renew the certificate. Does not wait for it.
   * @param use called with the first certificate and with each new one
   */
  start(use: (pair: ServingPair) => void): void;
  stop(): Promise<void>;
  /** @returns undefined if a valid certificate that clients trust is in use, otherwise why not */
  ready(): string | undefined;
}
