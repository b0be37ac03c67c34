import { DEFAULT_GLOBAL_NAMESPACES } from '../api/names.js';
import type { RightsConfig } from '../api/nad-rights.js';
import { type Settings, parseObjectNames } from './setting.js';

/** What an administrator allows network attachment definitions, by their namespaces. */
export const RIGHTS_SETTINGS: Settings<RightsConfig> = {
  globalNamespaces: {
    flag: 'global-namespaces',
    placeholder: 'name,...',
    description:
      'pools of network attachment definitions in these namespaces serve all namespaces, like globalNamespaces of Multus; those in others serve their own namespace, and those that they name',
    fallback: DEFAULT_GLOBAL_NAMESPACES,
    fallbackText: DEFAULT_GLOBAL_NAMESPACES.join(),
    parse: parseObjectNames,
  },
  capacityNamespaces: {
    flag: 'capacity-namespaces',
    placeholder: 'name,...',
    description:
      "pools of network attachment definitions in these namespaces may publish capacity on nodes; administrators' pools always may",
    fallback: [],
    fallbackText: 'none',
    parse: parseObjectNames,
  },
};
