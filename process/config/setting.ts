import { isObjectName } from '../../api/meta.js';
import { parseBindAddress } from '../listening.js';

/** One value of the configuration: the flag `--<flag>`, or the environment variable of the same name. */
export interface Setting<T> {
  readonly flag: string;
  /** The placeholder for the value in `--help`. */
  readonly placeholder: string;
  readonly description: string;
  /** The value if neither flag nor variable is set. */
  readonly defaultValue: T;
  /** The default as `--help` shows it, if its plain text is not clear. */
  readonly defaultText?: string;
  /** Another variable, which Kubernetes manifests usually set; read after our own. */
  readonly alternativeVariable?: string;
  /** A value must be set: the default is never used. */
  readonly isRequired?: boolean;
  /** The flag may be used without a value, which means `true`. */
  readonly isValueOptional?: boolean;
  /** @throws {TypeError} with the allowed values */
  parse(text: string): T;
}

/** The settings of a configuration: exactly one for each field. */
export type Settings<Config> = { readonly [Field in keyof Config]-?: Setting<Config[Field]> };

/** Requires that each default is a value of its setting, or absent, and that a setting has no other keys. */
type Fitting<All> = {
  readonly [Field in keyof All]: All[Field] extends { parse(text: string): infer T }
    ? { readonly defaultValue: T | undefined } & Record<Exclude<keyof All[Field], keyof Setting<T>>, never>
    : never;
};

/** Checks the types of settings, and returns them. */
export function settings<const All extends Record<string, Setting<unknown>>>(all: All & Fitting<All>): All {
  return all;
}

type OptionalField<All> = {
  [Field in keyof All]: All[Field] extends { readonly defaultValue: undefined } ? Field : never;
}[keyof All];

type ValueOf<S> = S extends { parse(text: string): infer T } ? T : never;

/** The configuration that settings describe. A field whose setting has no default may be absent. */
export type ConfigOf<All> = {
  readonly [Field in Exclude<keyof All, OptionalField<All>>]: ValueOf<All[Field]>;
} & {
  readonly [Field in OptionalField<All>]?: ValueOf<All[Field]> | undefined;
};

/** How the value of a setting is written and read. */
type ValueForm<T> = Pick<Setting<T>, 'placeholder' | 'parse'>;

const PREFIX = 'HOLDFAST_';

export function variableOf(setting: Setting<unknown>): string {
  return PREFIX + setting.flag.replaceAll('-', '_').toUpperCase();
}

export function parseText(text: string): string {
  if (text.trim() === '') throw new TypeError('must not be empty');
  return text;
}

export const FILE_PATH: ValueForm<string> = { placeholder: 'file', parse: parseText };
export const DIRECTORY_PATH: ValueForm<string> = { placeholder: 'directory', parse: parseText };

export const BOOLEAN: ValueForm<boolean> = {
  placeholder: 'true|false',
  parse: (text) => {
    if (text !== 'true' && text !== 'false') throw new TypeError('must be true or false');
    return text === 'true';
  },
};

export const BIND_ADDRESS: ValueForm<string> = {
  placeholder: 'host:port',
  parse: (text) => {
    parseBindAddress(text);
    return text;
  },
};

export const HTTPS_URL: ValueForm<string> = {
  placeholder: 'url',
  parse: (text) => {
    if (!URL.canParse(text) || new URL(text).protocol !== 'https:') throw new TypeError('must be an https:// URL');
    return text;
  },
};

export function parseObjectName(text: string): string {
  if (!isObjectName(text)) {
    throw new TypeError('must be the name of a Kubernetes object: lower-case letters, digits, - and .');
  }
  return text;
}

export const OBJECT_NAME: ValueForm<string> = { placeholder: 'name', parse: parseObjectName };
/** Names separated by commas; an empty text gives none. */
export const OBJECT_NAMES: ValueForm<readonly string[]> = {
  placeholder: 'name,...',
  parse: (text) => (text.trim() === '' ? [] : text.split(',').map((name) => parseObjectName(name.trim()))),
};

/** Texts separated by commas, at least one. @param what they are */
export function textList(what: string): (text: string) => readonly string[] {
  return (text) => {
    const texts = text.split(',').map((each) => each.trim());
    if (texts.includes('')) throw new TypeError(`must be a list of ${what}, separated by commas`);
    return Object.freeze(texts);
  };
}

export function oneOf<T extends string>(...allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((value) => value === text);
    if (found === undefined) throw new TypeError(`must be one of ${allowed.join(', ')}`);
    return found;
  };
}

export function wholeNumber(least: number, most: number): ValueForm<number> {
  const parse = (text: string) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) throw new TypeError(`must be a whole number from ${least} to ${most}`);
    return value;
  };
  return { placeholder: 'number', parse };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A duration in milliseconds, written in Go's notation with one unit: `500ms`, `30s`, `5m`, `1h`. */
export function duration(defaultText: string, leastMs: number, mostMs: number) {
  const parse = (text: string) => {
    const { amount = '', unit = '' } = /^(?<amount>\d{1,9})(?<unit>ms|s|m|h)$/.exec(text)?.groups ?? {};
    const ms = Number(amount) * (UNIT_MS[unit] ?? Number.NaN);
    if (!(ms >= leastMs && ms <= mostMs)) {
      throw new TypeError(`must be a duration like 500ms, 30s or 5m, from ${leastMs}ms to ${mostMs / 1000}s`);
    }
    return ms;
  };
  return { placeholder: 'duration', defaultText, defaultValue: parse(defaultText), parse };
}
