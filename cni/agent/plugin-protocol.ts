import { describeValue, isRecord, asRecord } from '../../api/json.js';
import { CniCode, CniError } from './cni-error.js';

/** What goes over the socket between plugin and agent: one object each way, the request on one line. */

/** What the runtime called the plugin with. A note of a deletion holds the same. */
export interface PluginRequest {
  /** The variables `CNI_…`. */
  readonly env: Readonly<Record<string, string>>;
  /** The text of stdin. */
  readonly config: string;
}

/** What the plugin does. */
export interface PluginResponse {
  readonly exit: 0 | 1;
  /** For stdout. */
  readonly output: string;
}

/** Said where the request does not tell which version its sender speaks. */
const NEWEST_VERSION = '1.1.0';

/** @throws {CniError} 6 */
export function readPluginRequest(text: string): PluginRequest {
  const value = parseJson(text, 'the request to the agent');
  const { env, config } = asRecord(value);
  if (!isRecord(env) || typeof config !== 'string') {
    throw new CniError(
      CniCode.Decode,
      `the request to the agent is ${describeValue(value)}, not {"env": {…}, "config": "…"}: plugin and agent are of different versions`,
    );
  }
  const variables = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { env: Object.fromEntries(variables), config };
}

/**
 * @param what begins the message
 * @throws {CniError} 6
 */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CniError(CniCode.Decode, `${what} is not JSON: ${(error as SyntaxError).message}`);
  }
}

/** @param result of the verb; none where it has nothing to say */
export function success(result?: object): PluginResponse {
  return { exit: 0, output: result === undefined ? '' : JSON.stringify(result) };
}

/** @param ask as far as it could be read: an error speaks the version of its request */
export function failure({ code, message, details }: CniError, ask?: PluginRequest): PluginResponse {
  const error = { cniVersion: versionOf(ask), code, msg: message, ...(details !== undefined && { details }) };
  return { exit: 1, output: JSON.stringify(error) };
}

function versionOf(ask: PluginRequest | undefined): string {
  try {
    const config: unknown = JSON.parse(ask?.config ?? '');
    const version = isRecord(config) ? config.cniVersion : undefined;
    return typeof version === 'string' && version !== '' ? version : NEWEST_VERSION;
  } catch {
    return NEWEST_VERSION;
  }
}
