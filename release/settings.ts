import { type PluginPlatform, readPluginPlatforms } from './platforms.js';
import { parseVersion } from './version.js';

/** What `make release` is told. */
export interface ReleaseSettings {
  readonly version: string;
  /** Of the container image, without tag. */
  readonly imageName: string;
  /** Where the source is: releases are below `<repository>/releases`. */
  readonly repository: string;
  /** Undefined: if a container engine answers. */
  readonly withImage: boolean | undefined;
  readonly pluginPlatforms: readonly PluginPlatform[];
  /** Builds a tree that is not ready for a release, to try. */
  readonly isDraft: boolean;
  /** The folder that gets the release. */
  readonly out: string;
}

/** Holdfast has no public repository yet. A real release sets REPOSITORY and IMAGE, as the workflow does. */
export const NO_REPOSITORY = 'https://example.com/holdfast';
const NO_IMAGE = 'holdfast';
const ANSWERS = new Map([['', undefined], ['yes', true], ['no', false]]); // oxfmt-ignore

/** @throws {Error} that names the variable */
export function readSettings(env: Readonly<Record<string, string | undefined>>): ReleaseSettings {
  const read = (name: string) => env[name] ?? '';
  const repository = (read('REPOSITORY') || NO_REPOSITORY).replace(/\/$/, '');
  if (!/^https:\/\/\S+$/.test(repository)) throw new Error(`REPOSITORY is "${repository}", which is no https URL`);
  // owners of repositories may have capitals in their names, images may not
  const imageName = (read('IMAGE') || NO_IMAGE).toLowerCase();
  if (!/^[a-z0-9.-]+(:\d+)?(\/[a-z0-9._-]+)*$/.test(imageName) || /:[^/]*$/.test(imageName))
    throw new Error(`IMAGE is "${imageName}": give the name of the image without tag`);
  const answer = read('WITH_IMAGE');
  if (!ANSWERS.has(answer)) throw new Error(`WITH_IMAGE is "${answer}": it can be yes or no`);
  const isDraft = read('DRAFT') !== '';
  if (read('PLUGIN_PLATFORMS') !== '' && !isDraft)
    throw new Error('PLUGIN_PLATFORMS is set, but a release has all platforms: set DRAFT=1 to try');
  return {
    version: parseVersion(read('VERSION')),
    imageName,
    repository,
    withImage: ANSWERS.get(answer),
    pluginPlatforms: readPluginPlatforms(read('PLUGIN_PLATFORMS')),
    isDraft,
    out: read('OUT') || 'out',
  };
}
