import { describeValue } from '../../api/json.js';
import { CniCode, CniError } from './cni-error.js';

/** The environment variables of the CNI protocol (CNI spec 1.1, section 2). */

export const CNI_COMMANDS = ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION'] as const;
export type CniCommand = (typeof CNI_COMMANDS)[number];

/** The validated variables of a request; `args` may be empty. */
export interface CniEnvironment {
  readonly command: CniCommand;
  /** Empty if the command needs none. */
  readonly containerId: string;
  readonly interfaceName: string;
  /** The pairs of CNI_ARGS that Holdfast uses. Keys without a value are left out. */
  readonly args: ReadonlyMap<ArgsKey, string>;
}

type Variable = 'CNI_CONTAINERID' | 'CNI_NETNS' | 'CNI_IFNAME' | 'CNI_PATH';

const REQUIRED: Readonly<Record<CniCommand, readonly Variable[]>> = {
  ADD: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'],
  DEL: ['CNI_CONTAINERID', 'CNI_IFNAME'],
  CHECK: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'],
  GC: ['CNI_PATH'],
  STATUS: [],
  VERSION: [],
};

const CONTAINER_ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** The names that the kernel accepts. */
const INTERFACE_NAME = /^(?!\.{1,2}$)[^/:\s\0]{1,15}$/u;

/** Reads and validates the variables. @throws {CniError} 4, naming all variables that are absent or invalid */
export function readEnvironment(env: Readonly<Record<string, string>>): CniEnvironment {
  const command = CNI_COMMANDS.find((each) => each === env.CNI_COMMAND);
  if (command === undefined) {
    throw new CniError(
      CniCode.InvalidEnvironment,
      `CNI_COMMAND is ${describeValue(env.CNI_COMMAND)}: it must be one of ${CNI_COMMANDS.join(', ')}`,
    );
  }
  const needsArgs = command === 'ADD' || command === 'CHECK';
  const { args, problem } = needsArgs ? readArgs(env.CNI_ARGS ?? '') : NO_ARGS;
  const problems = REQUIRED[command].flatMap((variable) => problemOf(variable, env[variable]) ?? []);
  if (problem !== undefined) problems.push(problem);
  if (problems.length > 0) throw new CniError(CniCode.InvalidEnvironment, problems.join('; '));
  return { command, containerId: env.CNI_CONTAINERID ?? '', interfaceName: env.CNI_IFNAME ?? '', args };
}

function problemOf(variable: Variable, value = ''): string | undefined {
  if (value === '') return `${variable} is absent`;
  if (variable === 'CNI_CONTAINERID' && !CONTAINER_ID.test(value)) {
    return `CNI_CONTAINERID is ${describeValue(value)}: it must begin with a letter or digit and contain only letters, digits, "_", "." and "-"`;
  }
  if (variable === 'CNI_IFNAME' && !INTERFACE_NAME.test(value)) {
    return `CNI_IFNAME is ${describeValue(value)}: it must have 1 to 15 characters and no "/", ":" or white space`;
  }
  return undefined;
}

const ARGS_KEYS = ['K8S_POD_NAMESPACE', 'K8S_POD_NAME', 'K8S_POD_UID', 'IP', 'MAC'] as const;
/** A key of CNI_ARGS that Holdfast uses. */
export type ArgsKey = (typeof ARGS_KEYS)[number];

const NO_ARGS: ReturnType<typeof readArgs> = { args: new Map() };

/**
 * Reads `K=V;K=V`, of which only the keys that Holdfast uses count. Multus repeats keys, which is allowed if the values are equal. Of the
 * others they may differ: Multus puts IgnoreUnknown=true before containerd's IgnoreUnknown=1.
 */
function readArgs(text: string): { args: ReadonlyMap<ArgsKey, string>; problem?: string } {
  const args = new Map<ArgsKey, string>();
  for (const pair of text.split(';')) {
    const equals = pair.indexOf('=');
    if (pair.trim() === '') continue;
    if (equals < 1) return { args, problem: `CNI_ARGS: ${describeValue(pair)} is not KEY=VALUE` };
    const key = ARGS_KEYS.find((each) => each === pair.slice(0, equals).trim());
    if (key === undefined) continue;
    const value = pair.slice(equals + 1);
    const known = args.get(key);
    if (known !== undefined && value !== '' && known !== value) {
      const problem = `CNI_ARGS: ${key} is both ${describeValue(known)} and ${describeValue(value)}: set it only once`;
      return { args, problem };
    }
    if (value !== '') args.set(key, value);
  }
  return { args };
}
