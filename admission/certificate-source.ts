/** The certificate and key of a TLS server, as PEM. */
export interface ServingPair {
  cert: string;
  key: string;
}

/** Where the serving certificate comes from. */
export interface CertificateSource {
  /**
   * Starts to watch or renew the certificate. Does not wait for it.
   * @param use called with the first certificate and with each new one
   */
  start(use: (pair: ServingPair) => void): void;
  stop(): Promise<void>;
  /** @returns undefined if a valid certificate that API servers trust is in use, otherwise why not */
  ready(): string | undefined;
}
