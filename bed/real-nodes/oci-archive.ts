import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ImageConfig } from '../../test/image/dockerfile.js';
import { capture } from '../processes/processes.js';

/** A part of an image: a file or folder of this machine, a file with a text, or an empty folder with a mode. */
export type ImageFile = { readonly target: string } & (
  { readonly source: string } | { readonly text: string } | { readonly mode: number }
);

export interface Image {
  /** As containerd lists it: with its registry and tag. */
  readonly name: string;
  readonly config: Partial<ImageConfig>;
  /** Links are followed. */
  readonly files: readonly ImageFile[];
}

/** What refers to a blob in the OCI image specification. */
interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const MEDIA_TYPE = 'application/vnd.oci.image';
/** Equal files give equal bytes, on each machine and at any time. */
const TAR = [
  ...['--create', '--format=gnu', '--sort=name', '--mtime=@0', '--dereference', '--hard-dereference'],
  ...['--owner=0', '--group=0', '--numeric-owner', '--mode=a+rX'],
];

/**
 * Writes an image as an archive for `ctr images import`: an OCI image layout with one layer that is not compressed.
 * Needs GNU tar, but no container engine.
 */
export async function writeOciArchive(path: string, { name, config, files }: Image): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const scratch = await mkdtemp(`${path}-`);
  try {
    const [root, layout] = [join(scratch, 'root'), join(scratch, 'layout')];
    const blobs = join(layout, 'blobs', 'sha256');
    await mkdir(blobs, { recursive: true });
    await mkdir(root);
    for (const file of files) await addTo(root, file);

    const layer = join(scratch, 'layer.tar');
    await packFolder(root, layer);
    const packed = await store(layer, blobs, `${MEDIA_TYPE}.layer.v1.tar`);
    const put = async (type: string, content: object) => {
      const file = join(scratch, type);
      await writeFile(file, JSON.stringify(content));
      return store(file, blobs, `${MEDIA_TYPE}.${type}.v1+json`);
    };
    const configBlob = await put('config', {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [packed.digest] },
    });
    const mediaType = `${MEDIA_TYPE}.manifest.v1+json`;
    const manifest = await put('manifest', { schemaVersion: 2, mediaType, config: configBlob, layers: [packed] });
    const annotations = {
      'io.containerd.image.name': name,
      'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1),
    };
    const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
    await writeFile(join(layout, 'index.json'), JSON.stringify(index));
    await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));

    await packFolder(layout, join(scratch, 'image.tar'));
    await rename(join(scratch, 'image.tar'), path);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Adds a file to a folder that tar packs. Files of this machine become links, because tar follows them. */
async function addTo(root: string, file: ImageFile): Promise<void> {
  const path = join(root, file.target);
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  if ('source' in file) return link(resolve(file.source), path);
  if ('text' in file) return writeFile(path, file.text, { mode: 0o644, flag: 'wx' });
  await mkdir(path);
  await chmod(path, file.mode);
}

async function link(source: string, path: string): Promise<void> {
  if (!(await stat(source)).isDirectory()) return symlink(source, path);
  await mkdir(path, { recursive: true, mode: 0o755 });
  for (const name of await readdir(source)) await link(join(source, name), join(path, name));
}

async function packFolder(folder: string, archive: string): Promise<void> {
  await capture('tar', [...TAR, '--file', archive, '--directory', folder, '--', ...(await readdir(folder))]);
}

/** Moves a file into a folder of blobs, under the name of its digest. */
async function store(file: string, blobs: string, mediaType: string): Promise<Descriptor> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const digest = hash.digest('hex');
  const { size } = await stat(file);
  await rename(file, join(blobs, digest));
  return { mediaType, digest: `sha256:${digest}`, size };
}
