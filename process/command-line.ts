import { type OutputConfiguration, Command } from 'commander';
import { AGENT_SETTINGS, type AgentConfig, INSTALL_SETTINGS, type InstallConfig } from './config/agent-config.js';
import { type BlockConfig, findBlockConfigProblem } from './config/ipam-config.js';
import { CAPACITY_SETTINGS, type CapacityConfig } from './config/capacity-config.js';
import { type ClientConfig, findClientConfigProblem } from './config/admission-config.js';
import {
  type ControllerConfig,
  type IpamConfig,
  type WebhookConfig,
  CONTROLLER_SETTINGS,
  IPAM_SETTINGS,
  WEBHOOK_SETTINGS,
} from './config/config.js';
import { GUEST_SETTINGS, type GuestConfig, RESPONDER_SETTINGS, type ResponderConfig } from './config/guest-config.js';
import { type PortsConfig, findMetricsConfigProblem } from './config/metrics-config.js';
import { UsageError, readArguments } from './read-arguments.js';
import { type Setting, type Settings, variableOf } from './config/setting.js';
import { VERSION } from './version.js';

/** The process to run, with its configuration. */
export type ProcessCommand =
  | { readonly process: 'controller'; readonly config: ControllerConfig }
  | { readonly process: 'webhook'; readonly config: WebhookConfig }
  | { readonly process: 'ipam'; readonly config: IpamConfig }
  | { readonly process: 'agent'; readonly config: AgentConfig }
  | { readonly process: 'install-plugin'; readonly config: InstallConfig }
  | { readonly process: 'capacity'; readonly config: CapacityConfig }
  | { readonly process: 'guest'; readonly config: GuestConfig }
  | { readonly process: 'responder'; readonly config: ResponderConfig }
  | { readonly process: 'all'; readonly config: AllConfig };

export type Environment = Readonly<Record<string, string | undefined>>;

/** Flags as commander returns them: their text, or true for a flag without a value. */
type FlagValues = Readonly<Record<string, string | true | undefined>>;

const SUMMARY = {
  controller: 'create and release IPAMClaims for VMs',
  webhook: 'set the claim reference on launcher pods',
  ipam: 'allocate addresses to claims on networks whose NADs delegate IPAM to holdfast',
  agent: 'serve the CNI plugin of one node: return claimed addresses and allocate addresses to pods',
  'install-plugin': "install the CNI plugin on the agent's node, then exit",
  capacity: 'show the number of free addresses on nodes, so that the scheduler counts them',
  guest: 'give guests the addresses of their claims, and report what guests have',
  responder: 'answer DHCP and router solicitations of the guests of one pool',
  all: 'controller, webhook, ipam and guest in one process',
} as const;

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
      throw new UsageError(`${asked}; processes: ${Object.keys(SUMMARY).join(', ')}`);
    });
  const add = <Config extends object>(
    name: keyof typeof SUMMARY,
    settings: Settings<Config>,
    use: (config: Config) => void,
  ) => {
    const command = program.command(name).description(SUMMARY[name]).helpOption('--help', 'print this help');
    command.addHelpText('after', '\nA flag overrides its environment variable.');
    for (const setting of Object.values<Setting<unknown>>(settings))
      command.option(flagsOf(setting), describeSetting(setting));
    command.action((given: FlagValues) => use(readConfig(settings, given, environment)));
  };
  add('controller', CONTROLLER_SETTINGS, (config) => take({ process: 'controller', config: checkConfig(config) }));
  add('webhook', WEBHOOK_SETTINGS, (config) => take({ process: 'webhook', config: checkClientConfig(config) }));
  add('ipam', IPAM_SETTINGS, (config) => take({ process: 'ipam', config: checkIpamConfig(config) }));
  add('agent', AGENT_SETTINGS, (config) => take({ process: 'agent', config: checkConfig(config) }));
  add('install-plugin', INSTALL_SETTINGS, (config) => take({ process: 'install-plugin', config }));
  add('capacity', CAPACITY_SETTINGS, (config) => take({ process: 'capacity', config: checkConfig(config) }));
  add('guest', GUEST_SETTINGS, (config) => take({ process: 'guest', config: checkConfig(config) }));
  add('responder', RESPONDER_SETTINGS, (config) => take({ process: 'responder', config: checkConfig(config) }));
  add('all', ALL_SETTINGS, (config) => take({ process: 'all', config: checkIpamConfig(config) }));
  return program;
}

/** Checks values that must fit together. */
function checkIpamConfig<Config extends BlockConfig & ClientConfig & PortsConfig>(config: Config): Config {
  const problem = findBlockConfigProblem(config);
  if (problem !== undefined) throw new UsageError(problem);
  return checkClientConfig(config);
}

function checkClientConfig<Config extends ClientConfig & PortsConfig>(config: Config): Config {
  const problem = findClientConfigProblem(config);
  if (problem !== undefined) throw new UsageError(problem);
  return checkConfig(config);
}

function checkConfig<Config extends PortsConfig>(config: Config): Config {
  const problem = findMetricsConfigProblem(config);
  if (problem !== undefined) throw new UsageError(problem);
  return config;
}

function flagsOf(setting: Setting<unknown>): string {
  const { flag, placeholder, isValueOptional } = setting;
  return isValueOptional ? `--${flag} [${placeholder}]` : `--${flag} <${placeholder}>`;
}

function describeSetting(setting: Setting<unknown>): string {
  const fallback = setting.defaultText ?? String(setting.defaultValue);
  return `${setting.description} (default: ${fallback}; env: ${variablesOf(setting).join(', ')})`;
}

function readConfig<Config extends object>(
  settings: Settings<Config>,
  given: FlagValues,
  environment: Environment,
): Config {
  const entries = Object.entries(settings as Record<string, Setting<unknown>>).map(([field, setting]) => [
    field,
    readSetting(setting, given[optionName(setting)], environment),
  ]);
  // Settings<Config> has one parser per field of Config.
  return Object.freeze(Object.fromEntries(entries) as Config);
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

/** The configuration of the processes that `holdfast all` runs. */
type AllConfig = ControllerConfig & WebhookConfig & IpamConfig & GuestConfig;

export const ALL_SETTINGS: Settings<AllConfig> = {
  ...CONTROLLER_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...IPAM_SETTINGS,
  ...GUEST_SETTINGS,
};
