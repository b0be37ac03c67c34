import { DEFAULT_GLOBAL_NAMESPACES } from '../api/names.js';
import { DEFAULT_MAX_DERIVED_POOLS, type NadRightsConfig } from '../api/nad-rights.js';
import { type Settings, parseBoolean, parseObjectNames, wholeNumber } from './setting.js';

/** What an administrator permits NetworkAttachmentDefinitions, by namespace. */
export const RIGHTS_SETTINGS: Settings<NadRightsConfig> = {
  globalNamespaces: {
    flag: 'global-namespaces',
    placeholder: 'name,...',
    description:
      'pools of NetworkAttachmentDefinitions in these namespaces serve all namespaces, like globalNamespaces of Multus; other ones serve their own namespace and those that they name',
    defaultValue: DEFAULT_GLOBAL_NAMESPACES,
    defaultText: DEFAULT_GLOBAL_NAMESPACES.join(),
    parse: parseObjectNames,
  },
  capacityNamespaces: {
    flag: 'capacity-namespaces',
    placeholder: 'name,...',
    description:
      "pools of NetworkAttachmentDefinitions in these namespaces may publish capacity on nodes; administrators' pools always may",
    defaultValue: [],
    defaultText: 'none',
    parse: parseObjectNames,
  },
  enforceAddressOwnership: {
    flag: 'enforce-address-ownership',
    placeholder: 'true|false',
    description:
      'drain pools of NetworkAttachmentDefinitions that have addresses of pools that do not serve their namespaces, also if both have equal subnets',
    defaultValue: false,
    parse: parseBoolean,
  },
  maxDerivedPools: {
    flag: 'max-derived-pools-per-namespace',
    placeholder: 'number',
    description:
      'how many pools are derived from NetworkAttachmentDefinitions of one namespace that is not in --global-namespaces; existing pools stay',
    defaultValue: DEFAULT_MAX_DERIVED_POOLS,
    parse: wholeNumber(0, 10_000),
  },
};
