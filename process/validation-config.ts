import { type Settings, parseBindText, parseHttpsUrl, parseObjectName, parseText } from './setting.js';

/** How ipam serves reviews of pools and network attachment definitions. */
export interface ValidationServerConfig {
  readonly validationBindAddress: string;
  /** Holds tls.crt and tls.key that somebody else renews. Without it ipam makes its own certificate. */
  readonly validationCertDir?: string | undefined;
  /** The ValidatingWebhookConfiguration whose caBundle is kept true. */
  readonly validationConfiguration: string;
  /** The Service whose name the certificate is for. */
  readonly validationServiceName: string;
  /** Where the API server finds the webhook when not by Service; its host is in the certificate. */
  readonly validationUrl?: string | undefined;
}

export const VALIDATION_SETTINGS: Settings<ValidationServerConfig> = {
  validationBindAddress: {
    flag: 'validation-bind-address',
    placeholder: 'host:port',
    description: 'where pools and network attachment definitions are validated, over HTTPS',
    defaultValue: ':9444',
    parse: parseBindText,
  },
  validationCertDir: {
    flag: 'validation-cert-dir',
    placeholder: 'directory',
    description: 'holds tls.crt and tls.key; then no certificate is made and no webhook configuration is changed',
    defaultValue: undefined,
    defaultText: 'ipam makes and renews its own certificate',
    parse: parseText,
  },
  validationConfiguration: {
    flag: 'validation-configuration',
    placeholder: 'name',
    description: 'the ValidatingWebhookConfiguration whose caBundle is kept true',
    defaultValue: 'holdfast-ipam',
    parse: parseObjectName,
  },
  validationServiceName: {
    flag: 'validation-service-name',
    placeholder: 'name',
    description: 'the Service that leads to the validation: the name in its certificate',
    defaultValue: 'holdfast-ipam',
    parse: parseObjectName,
  },
  validationUrl: {
    flag: 'validation-url',
    placeholder: 'url',
    description: 'where the API server finds the validation when not by Service',
    defaultValue: undefined,
    defaultText: 'by Service',
    parse: parseHttpsUrl,
  },
};
