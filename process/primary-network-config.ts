import { type Settings, parseObjectName } from './setting.js';

/** How the webhook serves VMs on primary user-defined networks. */
export interface PrimaryNetworkSettings {
  readonly defaultNetworkNadNamespace: string;
}

export const PRIMARY_NETWORK_SETTINGS: Settings<PrimaryNetworkSettings> = {
  defaultNetworkNadNamespace: {
    flag: 'default-network-nad-namespace',
    placeholder: 'name',
    description:
      "namespace of OVN-Kubernetes' NetworkAttachmentDefinition default, which requests for addresses on primary user-defined networks name",
    defaultValue: 'ovn-kubernetes',
    parse: parseObjectName,
  },
};
