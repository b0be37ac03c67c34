import { type OutputConfiguration, Command } from 'commander';
import { AGENT_SETTINGS, INSTALL_SETTINGS } from './config/agent-config.js';
import { findBlockConfigProblem } from './config/ipam-config.js';
import { findClientConfigProblem } from './config/admission-config.js';
import {
  CAPACITY_SETTINGS,
  CONTROLLER_SETTINGS,
  IPAM_SETTINGS,
  type IpamConfig,
  WEBHOOK_SETTINGS,
} from './config/config.js';
import { GUEST_SETTINGS, RESPONDER_SETTINGS } from './config/guest-config.js';
import { findMetricsConfigProblem } from './config/metrics-config.js';
import { UsageError, readArguments } from './read-arguments.js';
import { type ConfigOf, type Setting, variableOf } from './config/setting.js';
import { VERSION } from './version.js';

export const ALL_SETTINGS = { ...CONTROLLER_SETTINGS, ...WEBHOOK_SETTINGS, ...IPAM_SETTINGS, ...GUEST_SETTINGS };

const PROCESSES = {
  controller: { settings: CONTROLLER_SETTINGS, summary: 'create and release IPAMClaims for VMs' },
  webhook: { settings: WEBHOOK_SETTINGS, summary: 'set the claim reference on launcher pods' },
  ipam: {
    settings: IPAM_SETTINGS,
    summary: 'allocate addresses to claims on networks whose NADs delegate IPAM to holdfast',
  },
  agent: {
    settings: AGENT_SETTINGS,
    summary: 'serve the CNI plugin of one node: return claimed addresses and allocate addresses to pods',
  },
  'install-plugin': { settings: INSTALL_SETTINGS, summary: "install the CNI plugin on the agent's node, then exit" },
  capacity: {
    settings: CAPACITY_SETTINGS,
    summary: 'show the number of free addresses on nodes, so that the scheduler counts them',
  },
  guest: {
    settings: GUEST_SETTINGS,
    summary: 'give guests the addresses of their claims, and report what guests have',
  },
  responder: {
    settings: RESPONDER_SETTINGS,
    summary: 'answer DHCP and router solicitations of the guests of one pool',
  },
  all: { settings: ALL_SETTINGS, summary: 'controller, webhook, ipam and guest in one process' },
};
type ProcessName = keyof typeof PROCESSES;

/** The process to run, with its configuration. */
export type ProcessCommand = {
  [Name in ProcessName]: { readonly process: Name; readonly config: ConfigOf<(typeof PROCESSES)[Name]['settings']> };
}[ProcessName];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Flags as commander returns them: their text, or true for a flag without a value. */
type FlagValues = Readonly<Record<string, string | true | undefined>>;

/**
 * Reads the arguments after the program's name, and environment variables for absent flags.
 * @returns undefined if help or version was printed
 * @throws {UsageError}
 */
export function readCommandLine(
  args: readonly string[],
  environment: Environment,
  output: OutputConfiguration = {},
): ProcessCommand | undefined {
  let request: ProcessCommand | undefined;
  const program = buildProgram(environment, (made) => (request = made));
  return readArguments(program, args, output) ? request : undefined;
}

function buildProgram(environment: Environment, take: (request: ProcessCommand) => void): Command {
  const program = new Command('holdfast')
    .description('Persistent IP addresses for KubeVirt virtual machines on any secondary network.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .helpCommand(false)
    .usage('<process> [flags]')
    .configureHelp({ visibleArguments: () => [] })
    .addHelpText('after', '\nRun `holdfast <process> --help` for the flags of a process.')
    .argument('[process]')
    .action((name?: string) => {
      const asked = name === undefined ? 'no process is given' : `unknown process "${name}"`;
      throw new UsageError(`${asked}; processes: ${Object.keys(PROCESSES).join(', ')}`);
    });
  for (const [name, { settings, summary }] of Object.entries(PROCESSES)) {
    const command = program.command(name).description(summary).helpOption('--help', 'print this help');
    command.addHelpText('after', '\nA flag overrides its environment variable.');
    for (const setting of Object.values<Setting<unknown>>(settings))
      command.option(flagsOf(setting), describeSetting(setting));
    command.action((given: FlagValues) => {
      const config = readConfig(settings, given, environment);
      // the name determines the settings
      take({ process: name, config } as ProcessCommand);
    });
  }
  return program;
}

function flagsOf(setting: Setting<unknown>): string {
  const { flag, placeholder, isValueOptional } = setting;
  return isValueOptional ? `--${flag} [${placeholder}]` : `--${flag} <${placeholder}>`;
}

function describeSetting(setting: Setting<unknown>): string {
  const fallback = setting.defaultText ?? String(setting.defaultValue);
  return `${setting.description} (default: ${fallback}; env: ${variablesOf(setting).join(', ')})`;
}

/** @throws {UsageError} also if values cannot be combined */
function readConfig(
  settings: Readonly<Record<string, Setting<unknown>>>,
  given: FlagValues,
  environment: Environment,
): object {
  const entries = Object.entries(settings).map(([field, setting]) => [
    field,
    readSetting(setting, given[optionName(setting)], environment),
  ]);
  const config = Object.fromEntries(entries) as Partial<IpamConfig>;
  const problem = findBlockConfigProblem(config) ?? findClientConfigProblem(config) ?? findMetricsConfigProblem(config);
  if (problem !== undefined) throw new UsageError(problem);
  return Object.freeze(config);
}

function readSetting(setting: Setting<unknown>, given: string | true | undefined, environment: Environment): unknown {
  if (given !== undefined) return parseSetting(setting, given === true ? 'true' : given, `--${setting.flag}`);
  for (const variable of variablesOf(setting)) {
    const text = environment[variable];
    // Manifests omit a value with an empty variable.
    if (text) return parseSetting(setting, text, variable);
  }
  if (setting.isRequired) {
    const variables = variablesOf(setting).join(' or ');
    throw new UsageError(`--${setting.flag} is required, or ${variables}: ${setting.description}`);
  }
  return setting.defaultValue;
}

function variablesOf(setting: Setting<unknown>): string[] {
  return [variableOf(setting), ...(setting.alternativeVariable === undefined ? [] : [setting.alternativeVariable])];
}

function parseSetting(setting: Setting<unknown>, text: string, source: string): unknown {
  try {
    return setting.parse(text);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(`${source}: invalid value "${text}": ${error.message}`, { cause: error });
  }
}

/** Returns commander's key for an option. */
function optionName(setting: Setting<unknown>): string {
  return setting.flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
