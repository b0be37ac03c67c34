import { describeValue, isRecord, asRecord } from '../../api/json.js';
import { CniCode, CniError } from './cni-error.js';

/** The protocol between plugin and agent: one JSON object in each direction, the request on one line. */

/** The call of the runtime. A file of a pending delete has the same format. */
export interface PluginRequest {
  /** The `CNI_…` variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The text from stdin. */
  readonly config: string;
}

/** The exit code and output of the plugin. */
export interface PluginResponse {
  readonly exit: 0 | 1;
  /** Text for stdout. */
  readonly output: string;
}

/** The version of answers to requests that name none. */
const NEWEST_VERSION = '1.1.0';

/** Parses the JSON text. @throws {CniError} 6 */
export function readPluginRequest(text: string): PluginRequest {
  const value = parseRequestJson(text, 'the request to the agent');
  const { env, config } = asRecord(value);
  if (!isRecord(env) || typeof config !== 'string') {
    throw new CniError(
      CniCode.Decode,
      `the request to the agent is ${describeValue(value)}, not {"env": {…}, "config": "…"}: the CNI plugin and the agent have different versions`,
    );
  }
  const variables = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { env: Object.fromEntries(variables), config };
}

/**
 * @param what begins the message
 * @throws {CniError} 6
 */
export function parseRequestJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CniError(CniCode.Decode, `${what} is not JSON: ${(error as SyntaxError).message}`);
  }
}

/** Builds the response of a verb. @param result absent if the verb has none */
export function success(result?: object): PluginResponse {
  return { exit: 0, output: result === undefined ? '' : JSON.stringify(result) };
}

/** Builds the response for an error, in the CNI version of the request if that could be read. */
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
