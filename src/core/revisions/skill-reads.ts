import type { MainFilePreference } from '../format/main-files.ts'
import type { ServableFile } from '../read/file-cache.ts'
import type { FileContent } from '../read/file-content.ts'
import { fileError } from '../shared/errors.ts'
import type { Manifest } from '../shared/skill.ts'
import { hasForbiddenSequence } from '../shared/skill-name.ts'
import type { SkillArchive } from './archive.ts'
import type { SkillState } from './state.ts'

/** The reads of one skill, each of them of one state: present or kept. */
export abstract class SkillReads {
  abstract read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T>

  readMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    return this.read(name, (state) => state.mainFile(preference))
  }

  readFile (name: string, path: string): Promise<FileContent> {
    return this.#readFiles(name, (state) => state.file(path))
  }

  openFile (name: string, path: string): Promise<ServableFile> {
    return this.#readFiles(name, (state) => state.open(path))
  }

  manifest (name: string): Promise<Manifest> {
    return this.#readFiles(name, (state) => state.manifest())
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#readFiles(name, (state) => state.archive(nameOf))
  }

  /** `read_file_in_skill` has its own sentence for names. */
  async #readFiles<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    return await this.read(name, answer)
  }
}
