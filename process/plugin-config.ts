import { COMMON_SETTINGS, type CommonConfig } from './config.js';
import { type Setting, type Settings, parseText } from './setting.js';

/** The configuration of `holdfast install-plugin`, which installs the CNI plugin on a node and ends. */
export interface InstallConfig extends Pick<CommonConfig, 'logLevel'> {
  /** The runtime's directory of CNI plugins, as this process sees it. */
  readonly cniBinDir: string;
  /** The path of the same directory on the node, for messages. Absent: the same path. */
  readonly cniBinHostDir?: string | undefined;
}

export const CNI_BIN_HOST_DIR: Setting<string | undefined> = {
  flag: 'cni-bin-host-dir',
  placeholder: 'directory',
  description: 'path of --cni-bin-dir on the node, for messages',
  defaultValue: undefined,
  defaultText: 'that of --cni-bin-dir',
  parse: parseText,
};

export const INSTALL_SETTINGS: Settings<InstallConfig> = {
  logLevel: COMMON_SETTINGS.logLevel,
  cniBinDir: {
    flag: 'cni-bin-dir',
    placeholder: 'directory',
    description: "the runtime's directory of CNI plugins, in which the plugin is installed",
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    parse: parseText,
  },
  cniBinHostDir: CNI_BIN_HOST_DIR,
};

/** File names, of which one must be present. */
export type PluginAlternatives = readonly string[];

const FILE_NAME = /^[A-Za-z0-9][\w.-]*$/;

/** Reads `multus/multus-shim,bridge`: groups separated by commas, alternatives by slashes. An empty text gives none. */
export function parseRequiredPlugins(text: string): PluginAlternatives[] {
  if (text.trim() === '') return [];
  return text.split(',').map((group) =>
    group.split('/').map((name) => {
      if (!FILE_NAME.test(name.trim())) {
        throw new TypeError(
          'must be file names: a comma between plugins that are required, a slash between alternatives',
        );
      }
      return name.trim();
    }),
  );
}
