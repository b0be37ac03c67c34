import { type Settings, parseText } from './setting.js';

/** Which clients an admission server answers. */
export interface ClientConfig {
  /** CA certificates, as PEM: a client must show a certificate that one of them signed. Without it every client is answered. */
  readonly clientCaFile?: string | undefined;
  /** Common names that the certificate may be for; empty: all. */
  readonly clientAllowedNames: readonly string[];
}

export const CLIENT_SETTINGS: Settings<ClientConfig> = {
  clientCaFile: {
    flag: 'client-ca-file',
    placeholder: 'file',
    description: 'CA certificates: reviews are answered only for clients whose certificate one of them signed',
    defaultValue: undefined,
    defaultText: 'every client is answered',
    parse: parseText,
  },
  clientAllowedNames: {
    flag: 'client-allowed-names',
    placeholder: 'name,...',
    description: 'common names that the certificate of a client may have, together with --client-ca-file',
    defaultValue: Object.freeze([]),
    defaultText: 'all',
    parse: parseNames,
  },
};

/** @returns what is wrong with the two together */
export function findClientConfigProblem({ clientCaFile, clientAllowedNames }: ClientConfig): string | undefined {
  if (clientCaFile !== undefined || clientAllowedNames.length === 0) return undefined;
  const { clientCaFile: file, clientAllowedNames: names } = CLIENT_SETTINGS;
  return `--${names.flag} has no effect without --${file.flag}: name the file of the CA that signs the certificates of clients`;
}

function parseNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new TypeError('must be names with commas between them');
  return Object.freeze(names);
}
