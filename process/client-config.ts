import { type Settings, parseText } from './setting.js';

/** The clients that an admission server answers. */
export interface ClientConfig {
  /** File with CA certificates, as PEM: clients need a certificate that one of them signed. Absent: all clients are answered. */
  readonly clientCaFile?: string | undefined;
  /** Allowed common names of client certificates; empty: all. */
  readonly clientAllowedNames: readonly string[];
}

export const CLIENT_SETTINGS: Settings<ClientConfig> = {
  clientCaFile: {
    flag: 'client-ca-file',
    placeholder: 'file',
    description: 'file with CA certificates: only clients with a certificate that one of them signed are answered',
    defaultValue: undefined,
    defaultText: 'none, all clients are answered',
    parse: parseText,
  },
  clientAllowedNames: {
    flag: 'client-allowed-names',
    placeholder: 'name,...',
    description: 'allowed common names of client certificates; needs --client-ca-file',
    defaultValue: Object.freeze([]),
    defaultText: 'all',
    parse: parseNames,
  },
};

/** @returns why the values cannot be combined; undefined if they can */
export function findClientConfigProblem({ clientCaFile, clientAllowedNames }: ClientConfig): string | undefined {
  if (clientCaFile !== undefined || clientAllowedNames.length === 0) return undefined;
  const { clientCaFile: file, clientAllowedNames: names } = CLIENT_SETTINGS;
  return `--${names.flag} has no effect without --${file.flag}: set it to the file with the CA of the client certificates`;
}

function parseNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new TypeError('must be a list of names, separated by commas');
  return Object.freeze(names);
}
